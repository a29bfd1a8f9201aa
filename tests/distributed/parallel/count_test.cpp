#include <ATen/ATen.h>

#include "distributed/parallel/group_support.h"

namespace headway::testing {
namespace {

class Count : public GroupTest {};

/// What `kind` has grown by on `group` since it was made.
class Growth {
 public:
  Growth(const GroupCoordinator& group, Collective kind) : group_(group), kind_(kind), before_(group.count(kind)) {}

  CollectiveCount value() const {
    const CollectiveCount now = group_.count(kind_);
    return {now.calls - before_.calls, now.bytes - before_.bytes};
  }

 private:
  const GroupCoordinator& group_;
  Collective kind_;
  CollectiveCount before_;
};

TEST_P(Count, AddsUpCallsAndInputBytesOfGroupsLargerThanOne) {
  for (const GroupCoordinator* group : groups()) {
    const int64_t counted = group->size() > 1 ? 1 : 0;
    const Growth reduced(*group, Collective::all_reduce);
    const Growth gathered(*group, Collective::all_gather);
    const Growth scattered(*group, Collective::reduce_scatter);
    const Growth sent(*group, Collective::broadcast);
    group->all_reduce(numbered({3, 5}, 0));
    group->all_reduce(numbered({7}, 0, at::kLong));
    group->broadcast(numbered({11}, 0, at::kInt), {0});
    // Uneven: member r brings r + 1 rows, and is padded to the most.
    std::vector<int64_t> rows;
    for (int r = 0; r < group->size(); ++r) rows.push_back(r + 1);
    group->all_gather(numbered({group->rank().value + 1, 2}, 0), 0, rows);
    group->reduce_scatter(numbered({4 * group->size(), 3}, 0), 0);
    EXPECT_EQ(reduced.value(), (CollectiveCount{2 * counted, counted * (3 * 5 * 4 + 7 * 8)})) << group->name();
    EXPECT_EQ(gathered.value(), (CollectiveCount{counted, counted * (group->rank().value + 1) * 2 * 4}));
    EXPECT_EQ(scattered.value(), (CollectiveCount{counted, counted * 4 * group->size() * 3 * 4}));
    EXPECT_EQ(sent.value(), (CollectiveCount{counted, counted * 11 * 4}));
  }
}

TEST_P(Count, LeavesOutWhatHasNoElements) {
  for (const GroupCoordinator* group : groups()) {
    const Growth reduced(*group, Collective::all_reduce);
    group->all_reduce(numbered({0, 5}, 0));
    EXPECT_EQ(reduced.value(), CollectiveCount{});
  }
}

INSTANTIATE_TEST_SUITE_P(AttentionGroups, Count, ::testing::Values(1, 2, 3, 4, 8));

}  // namespace
}  // namespace headway::testing
