#include <ATen/ATen.h>

#include "distributed/parallel/group_support.h"
#include "headway/base/error.h"

namespace headway::testing {
namespace {

class AllReduce : public GroupTest {};

/// What the members' numbered tensors add up to.
at::Tensor sum_of_numbered(const GroupCoordinator& group, const std::vector<int64_t>& shape, at::ScalarType dtype) {
  at::Tensor sum = at::zeros(shape, at::kDouble);
  for (GlobalRank member : group.ranks()) sum += numbered(shape, member.value, at::kDouble).cpu();
  return sum.to(dtype);
}

TEST_P(AllReduce, AddsUpTheMembersOfThisGroupOnly) {
  for (const GroupCoordinator* group : groups()) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1}, {7}, {3, 5}, {2, 3, 4}, {4099}}) {
      for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kInt, at::kLong}) {
        EXPECT_TRUE(
            same(group->all_reduce(numbered(shape, global_rank().value, dtype)), sum_of_numbered(*group, shape, dtype)))
            << group->name();
      }
    }
  }
}

// Fault case C08: groups {0, 1} get 1 and {2, 3} get 5.
TEST_P(AllReduce, RankNumbersInEachAttentionGroup) {
  const GroupCoordinator& group = parallel_state(GetParam()).lm_head_tp();
  int64_t expected = 0;
  for (GlobalRank member : group.ranks()) expected += member.value;
  if (world_size() == 4 && GetParam() == 2) {
    EXPECT_EQ(expected, global_rank().value < 2 ? 1 : 5);
  }
  const at::Tensor sum = group.all_reduce(at::full({1}, global_rank().value, at::kLong).to(device()));
  EXPECT_EQ(sum.item<int64_t>(), expected);
}

TEST_P(AllReduce, SixteenBitFloatsAreRoundedOnce) {
  for (at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    for (const GroupCoordinator* group : groups()) {
      // Adding ones to 256 one at a time loses all of them in bfloat16, and to 2048 in float16.
      const double large = dtype == at::kBFloat16 ? 256 : 2048;
      const at::Tensor own = at::full({5}, group->is_first() ? large : 1.0, dtype).to(device());
      const at::Tensor expected = at::full({5}, large + group->size() - 1).to(dtype);
      if (std::string(group->backend_name()) == "nccl") continue;  // rounds at every step
      EXPECT_TRUE(same(group->all_reduce(own), expected)) << group->name();
    }
  }
}

TEST_P(AllReduce, AllMembersHoldTheSameBits) {
  at::manual_seed(17 + global_rank().value);
  for (const GroupCoordinator* group : groups()) {
    for (at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
      for (int64_t elements : {1, 3, 1001, 70001}) {
        const at::Tensor sum = group->all_reduce(at::randn({1, elements}).to(dtype).to(device()));
        const at::Tensor all = group->all_gather(sum, 0);
        for (int r = 0; r < group->size(); ++r) EXPECT_TRUE(at::equal(all[r], sum[0])) << group->name() << " " << r;
      }
    }
  }
}

TEST_P(AllReduce, TakesNonContiguousAndEmptyTensors) {
  for (const GroupCoordinator* group : groups()) {
    const at::Tensor transposed = numbered({3, 5}, global_rank().value).t();
    EXPECT_TRUE(same(group->all_reduce(transposed), sum_of_numbered(*group, {3, 5}, at::kFloat).t()));
    EXPECT_TRUE(same(group->all_reduce(numbered({0, 4}, 0)), at::zeros({0, 4})));
  }
}

TEST_P(AllReduce, RefusesWhatCannotBeSummed) {
  const GroupCoordinator& group = parallel_state(GetParam()).lm_head_tp();
  if (group.size() == 1 || std::string(group.backend_name()) == "nccl") GTEST_SKIP() << "nothing is refused";
  EXPECT_THROW(group.all_reduce(at::ones({2}, at::kBool)), ArgumentError);
  EXPECT_THROW(group.all_reduce(at::ones({2}, at::kComplexFloat)), ArgumentError);
}

INSTANTIATE_TEST_SUITE_P(AttentionGroups, AllReduce, ::testing::Values(1, 2, 3, 4, 8));

}  // namespace
}  // namespace headway::testing
