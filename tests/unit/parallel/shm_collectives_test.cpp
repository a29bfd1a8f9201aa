#include "parallel/shm/shm_collectives.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "unit/parallel/shm_test_support.h"

namespace headway::testing {
namespace {

const ShmOptions kOptions{.timeout = std::chrono::seconds(15), .local_ranks = 8};

/// Another value for each member and (up to a period that no chunk or part shares) each position.
template <typename T>
T value_of(int group_rank, int64_t position) {
  return static_cast<T>(static_cast<float>(position % 8191) / 64 + static_cast<float>(group_rank + 1) * 1.375f);
}

template <typename T>
std::vector<T> tensor_of(int group_rank, int64_t elements, int64_t first = 0) {
  std::vector<T> tensor(elements);
  for (int64_t i = 0; i < elements; ++i) tensor[i] = value_of<T>(group_rank, first + i);
  return tensor;
}

/// What all members must hold, to the bit.
template <typename T>
T sum_at(int members, int64_t position) {
  if constexpr (std::is_integral_v<T>) {
    T sum = 0;
    for (int r = 0; r < members; ++r) sum += value_of<T>(r, position);
    return sum;
  } else {
    float sum = 0;
    for (int r = 0; r < members; ++r) sum += static_cast<float>(value_of<T>(r, position));
    return static_cast<T>(sum);
  }
}

template <typename T>
void require_equal(T actual, T expected, const std::string& operation, int64_t elements, int64_t position) {
  if (std::memcmp(&actual, &expected, sizeof(T)) == 0) return;
  require(false, fmt::format("{} of {} elements of {} bytes, position {}: {} instead of {}", operation, elements,
                             sizeof(T), position, static_cast<double>(actual), static_cast<double>(expected)));
}

template <typename T>
void check_all_reduce(ShmSession& session, int64_t elements, DType dtype) {
  auto tensor = tensor_of<T>(session.self(), elements);
  session.collectives().all_reduce(tensor.data(), elements, dtype);
  for (int64_t i = 0; i < elements; ++i) {
    require_equal(tensor[i], sum_at<T>(session.size(), i), "all_reduce", elements, i);
  }
}

template <typename T>
void check_reduce_scatter(ShmSession& session, int64_t part, DType dtype) {
  const auto input = tensor_of<T>(session.self(), part * session.size());
  std::vector<T> output(part);
  session.collectives().reduce_scatter(output.data(), input.data(), part, dtype);
  for (int64_t i = 0; i < part; ++i) {
    require_equal(output[i], sum_at<T>(session.size(), session.self() * part + i), "reduce_scatter", part, i);
  }
}

void check_all_gather(ShmSession& session, int64_t bytes) {
  const auto input = tensor_of<uint8_t>(session.self(), bytes);
  std::vector<uint8_t> output(bytes * session.size());
  session.collectives().all_gather(output.data(), input.data(), bytes);
  for (size_t i = 0; i < output.size(); ++i) {
    require_equal(output[i], value_of<uint8_t>(i / bytes, i % bytes), "all_gather", bytes, i);
  }
}

void check_broadcast(ShmSession& session, int64_t bytes, int source) {
  auto tensor = tensor_of<uint8_t>(session.self(), bytes);
  session.collectives().broadcast(tensor.data(), bytes, GroupRank{source});
  for (int64_t i = 0; i < bytes; ++i) require_equal(tensor[i], value_of<uint8_t>(source, i), "broadcast", bytes, i);
}

/// Member `from` sends `scale` x (3 from + to, modulo 5) bytes to member `to`: all sizes differ and some are zero.
size_t bytes_between(int from, int to, int64_t scale) {
  return scale * ((3 * from + to) % 5);
}

void check_all_to_all(ShmSession& session, int64_t scale) {
  std::vector<size_t> sent, received;
  for (int r = 0; r < session.size(); ++r) {
    sent.push_back(bytes_between(session.self(), r, scale));
    received.push_back(bytes_between(r, session.self(), scale));
  }
  const size_t total = std::accumulate(received.begin(), received.end(), size_t{0});
  const auto input = tensor_of<uint8_t>(session.self(), std::accumulate(sent.begin(), sent.end(), int64_t{0}));
  std::vector<uint8_t> output(total);
  session.collectives().all_to_all(output.data(), input.data(), received, sent);
  size_t position = 0;
  for (int from = 0; from < session.size(); ++from) {
    size_t first = 0;
    for (int to = 0; to < session.self(); ++to) first += bytes_between(from, to, scale);
    for (size_t i = 0; i < received[from]; ++i, ++position) {
      require_equal(output[position], value_of<uint8_t>(from, first + i), "all_to_all", scale, position);
    }
  }
}

/// Around the ring and back, small enough to be sent before it is received, and large with the even ones sending first.
void check_mail(ShmSession& session, size_t bytes) {
  const int next = (session.self() + 1) % session.size();
  const int last = (session.self() + session.size() - 1) % session.size();
  const auto input = tensor_of<uint8_t>(session.self(), bytes);
  std::vector<uint8_t> output(bytes);
  const auto send = [&] { session.mail().send(input.data(), bytes, GroupRank{next}, 5); };
  const auto receive = [&] { session.mail().receive(output.data(), bytes, GroupRank{last}, 5); };
  const bool sends_first = bytes <= ShmMail::kEnvelopeBytes * ShmMail::kEnvelopes || session.self() != 0;
  if (sends_first) send();
  receive();
  if (!sends_first) send();
  for (size_t i = 0; i < bytes; ++i) require_equal(output[i], value_of<uint8_t>(last, i), "mail", bytes, i);
}

class Collectives : public ::testing::TestWithParam<int> {};

TEST_P(Collectives, AllReduceGivesEveryMemberTheSameSumAtEveryPosition) {
  expect_all_well(run_sessions(GetParam(), kOptions, [](ShmSession& session, auto&) {
    for (int64_t elements : {0, 1, 7, 896, 4097, 150'001}) {
      check_all_reduce<float>(session, elements, DType::F32);
      check_all_reduce<c10::BFloat16>(session, elements, DType::BF16);
      check_all_reduce<c10::Half>(session, elements, DType::F16);
      check_all_reduce<int32_t>(session, elements, DType::I32);
      check_all_reduce<int64_t>(session, elements, DType::I64);
    }
  }));
}

TEST_P(Collectives, ReduceScatterGivesEachMemberTheSumOfItsPart) {
  expect_all_well(run_sessions(GetParam(), kOptions, [](ShmSession& session, auto&) {
    for (int64_t part : {0, 1, 7, 896, 40'001}) {
      check_reduce_scatter<float>(session, part, DType::F32);
      check_reduce_scatter<c10::BFloat16>(session, part, DType::BF16);
      check_reduce_scatter<int64_t>(session, part, DType::I64);
    }
  }));
}

TEST_P(Collectives, AllGatherJoinsTheTensorsInGroupOrder) {
  expect_all_well(run_sessions(GetParam(), kOptions, [](ShmSession& session, auto&) {
    for (int64_t bytes : {0, 1, 3, 3584, 262'144, 600'001}) check_all_gather(session, bytes);
  }));
}

TEST_P(Collectives, BroadcastGivesTheTensorOfEachSource) {
  expect_all_well(run_sessions(GetParam(), kOptions, [](ShmSession& session, auto&) {
    for (int source = 0; source < session.size(); ++source) {
      for (int64_t bytes : {0, 1, 3583, 600'001}) check_broadcast(session, bytes, source);
    }
  }));
}

TEST_P(Collectives, AllToAllMovesUnevenPartsBetweenAllPairs) {
  expect_all_well(run_sessions(GetParam(), kOptions, [](ShmSession& session, auto&) {
    for (int64_t scale : {0, 1, 97, 30'011, 300'007}) check_all_to_all(session, scale);
  }));
}

TEST_P(Collectives, SendAndReceiveKeepTheirOrderBesideCollectives) {
  expect_all_well(run_sessions(GetParam(), kOptions, [](ShmSession& session, auto&) {
    for (size_t bytes : {0, 1, 4097, 65'536, 131'072, 300'001}) {
      check_mail(session, bytes);
      session.collectives().barrier();
    }
  }));
}

TEST_P(Collectives, NobodyLeavesABarrierBeforeAllHaveComeToIt) {
  ForkExchange exchange(GetParam());
  expect_all_well(run_members(exchange, GetParam(), [&](const GroupMember& member, const StringExchange& strings) {
    auto joined = ShmSession::join(member, kOptions, strings);
    for (int round = 1; round <= 50; ++round) {
      exchange.counter().fetch_add(1);
      joined.session->collectives().barrier();
      require(exchange.counter() >= round * member.size(), "left a barrier early");
      joined.session->collectives().barrier();
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(Members, Collectives, ::testing::Values(2, 3, 4, 5, 8));

TEST(ManyMembers, ReduceAndExchange) {
  const int kMembers = 64;
  expect_all_well(run_sessions(
      kMembers, {.timeout = std::chrono::seconds(30), .local_ranks = kMembers},
      [](ShmSession& session, auto&) {
        check_all_reduce<float>(session, 20'001, DType::F32);
        check_all_to_all(session, 101);
      },
      40));
}

}  // namespace
}  // namespace headway::testing
