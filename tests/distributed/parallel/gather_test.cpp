#include <ATen/ATen.h>

#include <numeric>

#include "distributed/parallel/group_support.h"
#include "headway/base/error.h"

namespace headway::testing {
namespace {

using Sizes = std::vector<int64_t>;

/// Extents of a group's members: equal ones, distinct ones with a zero, and a single member with anything at all.
std::vector<Sizes> extents_for(int members) {
  Sizes distinct;
  Sizes last_only;
  for (int r = 0; r < members; ++r) {
    distinct.push_back(r);
    last_only.push_back(r == members - 1 ? 3 : 0);
  }
  return {Sizes(members, 2), distinct, last_only, Sizes(members, 0)};
}

std::vector<int64_t> shape_with(int64_t dim, int64_t extent) {
  std::vector<int64_t> shape{3, 2, 5};
  shape[dim] = extent;
  return shape;
}

/// The members' numbered tensors side by side, as no collective made it.
at::Tensor joined(const GroupCoordinator& group, int64_t dim, const Sizes& extents, at::ScalarType dtype) {
  std::vector<at::Tensor> parts;
  for (int r = 0; r < group.size(); ++r) {
    parts.push_back(numbered(shape_with(dim, extents[r]), group.ranks()[r].value, dtype));
  }
  return at::cat(parts, dim);
}

at::Tensor own_part(const GroupCoordinator& group, int64_t dim, const Sizes& extents, at::ScalarType dtype) {
  return numbered(shape_with(dim, extents[group.rank().value]), group.global_rank().value, dtype);
}

class Gathering : public GroupTest {};

TEST_P(Gathering, AllGatherJoinsAlongAnyDimension) {
  for (const GroupCoordinator* group : groups()) {
    for (const Sizes& extents : extents_for(group->size())) {
      for (int64_t dim : {0, 1, 2}) {
        for (at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kLong, at::kBool}) {
          const at::Tensor own = own_part(*group, dim, extents, dtype);
          const at::Tensor expected = joined(*group, dim, extents, dtype);
          EXPECT_TRUE(same(group->all_gather(own, dim, extents), expected)) << group->name() << " " << dim;
        }
      }
    }
  }
}

TEST_P(Gathering, AllGatherTakesEqualSizesUnasked) {
  for (const GroupCoordinator* group : groups()) {
    const Sizes extents(group->size(), 2);
    const at::Tensor own = own_part(*group, 1, extents, at::kFloat);
    EXPECT_TRUE(same(group->all_gather(own, 1), joined(*group, 1, extents, at::kFloat)));
    EXPECT_TRUE(same(group->all_gather(own, -2), joined(*group, 1, extents, at::kFloat)));
  }
}

TEST_P(Gathering, AllGatherTakesNonContiguousTensors) {
  for (const GroupCoordinator* group : groups()) {
    const at::Tensor own = numbered({4, 3}, global_rank().value).t();
    std::vector<at::Tensor> parts;
    for (GlobalRank member : group->ranks()) parts.push_back(numbered({4, 3}, member.value).t());
    EXPECT_TRUE(same(group->all_gather(own, 1), at::cat(parts, 1)));
  }
}

TEST_P(Gathering, GatherGivesAllToOneMember) {
  for (const GroupCoordinator* group : groups()) {
    for (const Sizes& extents : extents_for(group->size())) {
      for (int destination = 0; destination < group->size(); ++destination) {
        const at::Tensor own = own_part(*group, 1, extents, at::kInt);
        const at::Tensor all = group->gather(own, 1, {destination}, extents);
        EXPECT_EQ(all.defined(), group->rank().value == destination);
        if (all.defined()) {
          EXPECT_TRUE(same(all, joined(*group, 1, extents, at::kInt))) << group->name();
        }
      }
    }
  }
}

TEST_P(Gathering, ReduceScatterKeepsThisMembersCutOfTheSum) {
  for (const GroupCoordinator* group : groups()) {
    for (const Sizes& extents : extents_for(group->size())) {
      const int64_t total = std::accumulate(extents.begin(), extents.end(), int64_t{0});
      const auto before = extents.begin() + group->rank().value;
      const int64_t begin = std::accumulate(extents.begin(), before, int64_t{0});
      for (int64_t dim : {0, 1, 2}) {
        at::Tensor sum = at::zeros(shape_with(dim, total), at::kFloat);
        for (GlobalRank member : group->ranks()) sum += numbered(shape_with(dim, total), member.value).cpu();
        const at::Tensor expected = sum.narrow(dim, begin, *before);
        const at::Tensor input = numbered(shape_with(dim, total), global_rank().value);
        EXPECT_TRUE(same(group->reduce_scatter(input, dim - 3, extents), expected)) << group->name() << " " << dim;
        if (extents.front() == extents.back()) {
          EXPECT_TRUE(same(group->reduce_scatter(input, dim), expected)) << group->name() << " " << dim;
        }
      }
    }
  }
}

TEST_P(Gathering, ReduceScatterSumsSixteenBitFloatsWiderUnevenOrNot) {
  for (const GroupCoordinator* group : groups()) {
    if (std::string(group->backend_name()) == "nccl") continue;  // rounds at every step
    for (const Sizes& extents : extents_for(group->size())) {
      const int64_t total = std::accumulate(extents.begin(), extents.end(), int64_t{0});
      const at::Tensor own = at::full({total}, group->is_first() ? 256.0 : 1.0, at::kBFloat16).to(device());
      const at::Tensor expected = at::full({extents[group->rank().value]}, 256.0 + group->size() - 1).to(at::kBFloat16);
      EXPECT_TRUE(same(group->reduce_scatter(own, 0, extents), expected)) << group->name();
    }
  }
}

TEST_P(Gathering, WrongArgumentsAreNamed) {
  for (const GroupCoordinator* group : groups()) {
    const at::Tensor tensor = numbered({2, 3}, 0);
    EXPECT_THROW(group->all_gather(tensor, 2), ArgumentError);
    EXPECT_THROW(group->all_gather(tensor, -3), ArgumentError);
    EXPECT_THROW(group->all_gather(tensor, 0, Sizes(group->size(), 5)), ArgumentError);
    EXPECT_THROW(group->all_gather(tensor, 0, Sizes(group->size() + 1, 2)), ArgumentError);
    EXPECT_THROW(group->reduce_scatter(tensor, 0, Sizes(group->size(), 5)), ArgumentError);
    EXPECT_THROW(group->gather(tensor, 0, {group->size()}), ArgumentError);
    if (group->size() > 3) {
      EXPECT_THROW(group->reduce_scatter(tensor, 0), ArgumentError);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AttentionGroups, Gathering, ::testing::Values(1, 2, 3, 4, 8));

}  // namespace
}  // namespace headway::testing
