// Ranks as threads of one process over one mapping, so that ThreadSanitizer sees both sides of every access.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "headway/base/error.h"
#include "parallel/message/message_ring.h"
#include "parallel/shm/shm_session.h"
#include "unit/parallel/shm_test_support.h"

namespace headway::testing {
namespace {

constexpr std::chrono::seconds kTimeout{60};
/// Hardly any spinning, so that sleeping and waking are exercised as well.
constexpr SpinPolicy kShortSpin{.tight = std::chrono::nanoseconds{0}, .yielding = std::chrono::microseconds{5}};

std::shared_ptr<SharedSegment> prepared_segment(const SegmentPlan& plan) {
  auto segment = SharedSegment::create(plan.bytes);
  segment->reserve(0, plan.bytes);
  plan.construct(segment->data());
  return segment;
}

/// Runs `body(group_rank)` in a thread for each member and fails with what they throw.
void run_threads(int members, const std::function<void(int group_rank)>& body) {
  std::vector<std::thread> threads;
  std::vector<std::string> failures(members);
  for (int r = 0; r < members; ++r) {
    threads.emplace_back([&, r] {
      try {
        body(r);
      } catch (const std::exception& error) {
        failures[r] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int r = 0; r < members; ++r) EXPECT_EQ(failures[r], "") << "group rank " << r;
}

/// A session per thread; none is closed before all are through.
void run_session_threads(int members, SpinPolicy spinning, const std::function<void(ShmSession&)>& body) {
  const auto segment = prepared_segment(ShmSession::plan(members));
  const std::vector<ProcessIdentity> processes(members, own_process());
  std::vector<std::unique_ptr<ShmSession>> sessions;
  for (int r = 0; r < members; ++r) {
    sessions.push_back(std::make_unique<ShmSession>(member_of(members, r), processes, segment, kTimeout, spinning));
  }
  run_threads(members, [&](int r) { body(*sessions[r]); });
}

int32_t value_of(int round, int group_rank, int64_t i) {
  return static_cast<int32_t>(round * 1000 + group_rank * 17 + i);
}

/// The same operations of random kinds and sizes on every member, with random pauses.
class RandomOperations {
 public:
  RandomOperations(ShmSession& session, int rounds) : session_(session), rounds_(rounds) {}

  void run() {
    std::mt19937 pauses(session_.self());
    for (round_ = 0; round_ < rounds_; ++round_) {
      if (pauses() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(pauses() % 200));
      const auto size = static_cast<int64_t>(common_() % 4 == 0 ? common_() % 90'000 : common_() % 600);
      switch (common_() % 5) {
        case 0:
          all_reduce(size);
          break;
        case 1:
          all_gather(size);
          break;
        case 2:
          broadcast(size, static_cast<int>(common_() % session_.size()));
          break;
        case 3:
          reduce_scatter(size);
          break;
        default:
          around_the_ring(size % 16'000);
          break;
      }
    }
    session_.collectives().barrier();
  }

 private:
  std::vector<int32_t> own_tensor(int64_t size) const {
    std::vector<int32_t> tensor(size);
    for (int64_t i = 0; i < size; ++i) tensor[i] = value_of(round_, session_.self(), i);
    return tensor;
  }

  int32_t sum_at(int64_t i) const {
    int32_t sum = 0;
    for (int r = 0; r < session_.size(); ++r) sum += value_of(round_, r, i);
    return sum;
  }

  void check(bool holds, const char* what, int64_t i) const {
    if (!holds) require(false, fmt::format("{} of round {} is wrong at {}", what, round_, i));
  }

  void all_reduce(int64_t size) {
    auto tensor = own_tensor(size);
    session_.collectives().all_reduce(tensor.data(), size, DType::I32);
    for (int64_t i = 0; i < size; ++i) check(tensor[i] == sum_at(i), "all_reduce", i);
  }

  void reduce_scatter(int64_t size) {
    const auto input = own_tensor(size * session_.size());
    std::vector<int32_t> output(size);
    session_.collectives().reduce_scatter(output.data(), input.data(), size, DType::I32);
    for (int64_t i = 0; i < size; ++i) check(output[i] == sum_at(session_.self() * size + i), "reduce_scatter", i);
  }

  void all_gather(int64_t size) {
    const auto input = own_tensor(size);
    std::vector<int32_t> output(size * session_.size());
    session_.collectives().all_gather(output.data(), input.data(), size * sizeof(int32_t));
    for (int64_t i = 0; i < static_cast<int64_t>(output.size()); ++i) {
      check(output[i] == value_of(round_, static_cast<int>(i / size), i % size), "all_gather", i);
    }
  }

  void broadcast(int64_t size, int source) {
    auto tensor = own_tensor(size);
    session_.collectives().broadcast(tensor.data(), size * sizeof(int32_t), GroupRank{source});
    for (int64_t i = 0; i < size; ++i) check(tensor[i] == value_of(round_, source, i), "broadcast", i);
  }

  void around_the_ring(int64_t size) {
    const int members = session_.size();
    const int before = (session_.self() + members - 1) % members;
    const auto input = own_tensor(size);
    std::vector<int32_t> output(size);
    session_.mail().send(input.data(), size * sizeof(int32_t), GroupRank{(session_.self() + 1) % members}, round_);
    session_.mail().receive(output.data(), size * sizeof(int32_t), GroupRank{before}, round_);
    for (int64_t i = 0; i < size; ++i) check(output[i] == value_of(round_, before, i), "mail", i);
  }

  ShmSession& session_;
  int rounds_;
  int round_ = 0;
  std::mt19937 common_{42};
};

class RanksAsThreads : public ::testing::TestWithParam<int> {};

TEST_P(RanksAsThreads, AgreeOnAllValuesWhileSpinning) {
  run_session_threads(GetParam(), SpinPolicy::for_host(false),
                      [](ShmSession& session) { RandomOperations(session, 150).run(); });
}

TEST_P(RanksAsThreads, AgreeOnAllValuesWhileSleeping) {
  run_session_threads(GetParam(), kShortSpin, [](ShmSession& session) { RandomOperations(session, 150).run(); });
}

TEST_P(RanksAsThreads, ReadTheSameMessages) {
  const int members = GetParam();
  const auto segment = prepared_segment(MessageRing::plan(members));
  const std::vector<ProcessIdentity> processes(members, own_process());
  std::vector<int> readers(members - 1);
  std::iota(readers.begin(), readers.end(), 1);
  std::vector<std::unique_ptr<MessageRing>> rings;
  for (int r = 0; r < members; ++r) {
    rings.push_back(std::make_unique<MessageRing>(member_of(members, r), processes, segment, GroupRank{0}, readers,
                                                  kTimeout, kShortSpin));
  }
  run_threads(members, [&](int r) {
    std::mt19937 common(7);
    std::mt19937 pauses(r);
    for (int number = 0; number < 400; ++number) {
      const size_t bytes = common() % 10 == 0 ? common() % 100'000 : common() % 3000;
      const std::string message(bytes, static_cast<char>('a' + number % 26));
      if (pauses() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(pauses() % 200));
      if (r == 0) {
        rings[0]->write(message);
      } else {
        require(rings[r]->read({}) == message, fmt::format("message {} is another one", number));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Members, RanksAsThreads, ::testing::Values(2, 3, 5, 8));

/// One gives up while the others wait, enter and leave.
TEST(FailingWhileOthersWait, ReachesAllOfThem) {
  std::atomic<int> failed{0};
  run_session_threads(4, kShortSpin, [&](ShmSession& session) {
    for (int i = 0; i < 20; ++i) session.collectives().barrier();
    try {
      if (session.self() == 3) {
        session.collectives().broadcast(nullptr, 0, GroupRank{0});
      } else {
        session.collectives().barrier();
      }
    } catch (const CommunicationError&) {
      ++failed;
    }
  });
  EXPECT_EQ(failed, 4);
}

}  // namespace
}  // namespace headway::testing
