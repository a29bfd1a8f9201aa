#include <ATen/ATen.h>

#include <numeric>

#include "distributed/parallel/group_support.h"
#include "headway/base/error.h"

namespace headway::testing {
namespace {

using Sizes = std::vector<int64_t>;

class Exchange : public GroupTest {};

/// How many rows member `from` sends to member `to`: distinct for most pairs, some zero.
int64_t rows_between(int from, int to) {
  return (3 * from + 2 * to) % 5;
}

/// The rows that `from` sends to `to`: no two pairs send the same numbers.
at::Tensor rows_of(int from, int to) {
  return numbered({rows_between(from, to), 3}, 10 * from + to);
}

TEST_P(Exchange, AllToAllDeliversEachPairsRows) {
  for (const GroupCoordinator* group : groups()) {
    const int self = group->rank().value;
    Sizes sent;
    Sizes received;
    std::vector<at::Tensor> outgoing;
    std::vector<at::Tensor> incoming;
    for (int r = 0; r < group->size(); ++r) {
      sent.push_back(rows_between(self, r));
      received.push_back(rows_between(r, self));
      outgoing.push_back(rows_of(self, r));
      incoming.push_back(rows_of(r, self));
    }
    EXPECT_TRUE(same(group->all_to_all(at::cat(outgoing), received, sent), at::cat(incoming))) << group->name();
    const at::Tensor strided = at::cat(outgoing).t().contiguous().t();
    EXPECT_TRUE(same(group->all_to_all(strided, received, sent), at::cat(incoming))) << group->name();
  }
}

TEST_P(Exchange, AllToAllOfNothing) {
  for (const GroupCoordinator* group : groups()) {
    const Sizes none(group->size(), 0);
    EXPECT_TRUE(same(group->all_to_all(numbered({0, 3}, 0), none, none), at::zeros({0, 3}))) << group->name();
  }
}

TEST_P(Exchange, AllToAllRefusesSizesThatDoNotFit) {
  for (const GroupCoordinator* group : groups()) {
    const Sizes ones(group->size(), 1);
    EXPECT_THROW(group->all_to_all(numbered({group->size() + 1, 3}, 0), ones, ones), ArgumentError);
    EXPECT_THROW(group->all_to_all(numbered({1, 3}, 0), ones, Sizes(group->size() + 1, 1)), ArgumentError);
    EXPECT_THROW(group->all_to_all(numbered({1, 3}, 0), ones, Sizes(group->size(), -1)), ArgumentError);
  }
}

TEST_P(Exchange, SendAndReceiveAroundTheGroup) {
  for (const GroupCoordinator* group : groups()) {
    if (group->size() == 1) continue;
    const int size = group->size();
    const GroupRank next{(group->rank().value + 1) % size};
    const GroupRank previous{(group->rank().value + size - 1) % size};
    const at::Tensor own = numbered({3, 2}, global_rank().value).t();
    const at::Tensor expected = numbered({3, 2}, group->global_rank_of(previous).value).t();
    at::Tensor arrived = numbered({3, 2}, 77).t();
    if (group->rank().value % 2 == 0) {
      group->send(own, next, 5);
      arrived = group->recv(arrived, previous, 5);
    } else {
      const at::Tensor received = group->recv(arrived, previous, 5);
      group->send(own, next, 5);
      EXPECT_TRUE(received.is_same(arrived));
    }
    EXPECT_TRUE(same(arrived, expected)) << group->name();
  }
}

TEST_P(Exchange, ThereIsNobodyElseAtThisRankOrOutsideTheGroup) {
  for (const GroupCoordinator* group : groups()) {
    at::Tensor tensor = numbered({2}, 0);
    EXPECT_THROW(group->send(tensor, group->rank()), ArgumentError);
    EXPECT_THROW(group->recv(tensor, group->rank()), ArgumentError);
    EXPECT_THROW(group->send(tensor, {group->size()}), ArgumentError);
    EXPECT_THROW(group->recv(tensor, {-1}), ArgumentError);
  }
}

TEST_P(Exchange, BarrierReturnsOnEveryMember) {
  for (const GroupCoordinator* group : groups()) {
    for (int i = 0; i < 3; ++i) EXPECT_NO_THROW(group->barrier());
  }
}

INSTANTIATE_TEST_SUITE_P(AttentionGroups, Exchange, ::testing::Values(1, 2, 3, 4, 8));

}  // namespace
}  // namespace headway::testing
