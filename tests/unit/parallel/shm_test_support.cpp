#include "unit/parallel/shm_test_support.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "headway/base/error.h"

namespace headway::testing {
namespace {

constexpr size_t kTextBytes = 4096;
constexpr int kRounds = 256;
constexpr int kMaxMembers = 64;

/// A failure text as a dying process leaves it.
struct Failure {
  std::atomic<bool> present{false};
  char text[kTextBytes];
};

template <typename T>
T* shared_memory() {
  void* memory = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap");
  return new (memory) T;
}

void set_text(char* target, const std::string& text) {
  std::strncpy(target, text.c_str(), kTextBytes - 1);
}

[[noreturn]] void run_child(const MemberBody& body, const GroupMember& member, const StringExchange& exchange,
                            Failure& failure, int limit_seconds) {
  ::alarm(limit_seconds);
  try {
    body(member, exchange);
  } catch (const std::exception& error) {
    set_text(failure.text, error.what());
    failure.present = true;
  }
  ::_exit(0);
}

}  // namespace

struct ForkExchange::Memory {
  std::atomic<int> counter{0};
  std::atomic<int> arrived[kRounds] = {};
  char texts[kRounds][kMaxMembers][kTextBytes];  // untouched pages cost nothing
};

ForkExchange::ForkExchange(int members) : memory_(shared_memory<Memory>()), members_(members) {}
ForkExchange::~ForkExchange() {
  ::munmap(memory_, sizeof(Memory));
}

std::atomic<int>& ForkExchange::counter() {
  return memory_->counter;
}

StringExchange ForkExchange::of(int group_rank) {
  return [this, group_rank, round = 0](const std::string& own) mutable {
    require(round < kRounds && own.size() < kTextBytes, "the exchange is used up");
    set_text(memory_->texts[round][group_rank], own);
    memory_->arrived[round].fetch_add(1);
    const auto deadline = SteadyClock::now() + std::chrono::seconds(10);
    while (memory_->arrived[round] < members_) {
      require(SteadyClock::now() < deadline, "a member did not come to the exchange");
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    std::vector<std::string> all;
    for (int r = 0; r < members_; ++r) all.emplace_back(memory_->texts[round][r]);
    ++round;
    return all;
  };
}

GroupMember member_of(int members, int group_rank) {
  GroupMember member;
  for (int r = 0; r < members; ++r) member.ranks.push_back(GlobalRank{10 + r});
  member.self = GroupRank{group_rank};
  return member;
}

std::vector<Outcome> run_members(ForkExchange& exchange, int members, const MemberBody& body, int limit_seconds,
                                 const std::function<void(const std::vector<pid_t>&)>& parent) {
  struct Failures {
    Failure of[kMaxMembers];
  };
  auto* failures = shared_memory<Failures>();
  const auto start = SteadyClock::now();
  std::vector<pid_t> children;
  for (int r = 0; r < members; ++r) {
    const pid_t child = ::fork();
    if (child == 0) run_child(body, member_of(members, r), exchange.of(r), failures->of[r], limit_seconds);
    children.push_back(child);
  }
  if (parent) parent(children);
  std::vector<Outcome> outcomes(members);
  for (int waiting = members; waiting > 0; --waiting) {
    int status = 0;
    const pid_t ended = ::wait(&status);
    for (int r = 0; r < members; ++r) {
      if (children[r] != ended) continue;
      outcomes[r].seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
      if (failures->of[r].present) outcomes[r].failure = failures->of[r].text;
      if (WIFSIGNALED(status)) outcomes[r].signal = WTERMSIG(status);
    }
  }
  ::munmap(failures, sizeof(Failures));
  return outcomes;
}

std::vector<Outcome> run_sessions(int members, const ShmOptions& options, const SessionBody& body, int limit_seconds,
                                  const std::function<void(const std::vector<pid_t>&)>& parent) {
  ForkExchange exchange(members);
  const auto member_body = [&](const GroupMember& member, const StringExchange& strings) {
    auto joined = ShmSession::join(member, options, strings);
    require(joined.session != nullptr, "refused: " + joined.refusal);
    body(*joined.session, exchange.counter());
  };
  return run_members(exchange, members, member_body, limit_seconds, parent);
}

void wait_for(const std::atomic<int>& steps, int count) {
  while (steps < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void require(bool holds, const std::string& text) {
  if (!holds) throw std::runtime_error(text);
}

void expect_all_well(const std::vector<Outcome>& outcomes) {
  for (size_t r = 0; r < outcomes.size(); ++r) {
    EXPECT_EQ(outcomes[r].failure, "") << "group rank " << r;
    EXPECT_EQ(outcomes[r].signal, 0) << "group rank " << r;
  }
}

void all_reduce_ones(ShmSession& session, int64_t elements) {
  std::vector<float> tensor(elements, 1.0f);
  session.collectives().all_reduce(tensor.data(), elements, DType::F32);
}

std::vector<std::string> files_in_shared_memory_folder() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace headway::testing
