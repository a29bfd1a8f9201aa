#include <ATen/ATen.h>

#include "distributed/parallel/group_support.h"
#include "headway/base/error.h"

namespace headway::testing {
namespace {

class Broadcast : public GroupTest {};

// Fault case C09: from each group's first rank, by group rank; for groups {0, 1} and {2, 3} that gives 0 0 2 2.
TEST_P(Broadcast, SourceIsAGroupRank) {
  const GroupCoordinator& group = parallel_state(GetParam()).lm_head_tp();
  const at::Tensor value = group.broadcast(at::full({1}, global_rank().value, at::kLong).to(device()), {0});
  EXPECT_EQ(value.item<int64_t>(), global_rank().value / GetParam() * GetParam());
}

TEST_P(Broadcast, FromEveryMember) {
  for (const GroupCoordinator* group : groups()) {
    for (int source = 0; source < group->size(); ++source) {
      for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBool, at::kLong}) {
        const at::Tensor value = group->broadcast(numbered({3, 5}, global_rank().value, dtype), {source});
        EXPECT_TRUE(same(value, numbered({3, 5}, group->ranks()[source].value, dtype))) << group->name();
      }
      at::Tensor strided = numbered({3, 5}, global_rank().value).t();
      EXPECT_TRUE(group->broadcast(strided, {source}).is_same(strided));
      EXPECT_TRUE(same(strided, numbered({3, 5}, group->ranks()[source].value).t())) << group->name();
    }
  }
}

std::string object_of(int rank, size_t length) {
  std::string bytes(length, '\0');
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<char>(31 * rank + 7 * i);
  return bytes;
}

TEST_P(Broadcast, ObjectsOfAnyLength) {
  for (const GroupCoordinator* group : groups()) {
    for (size_t length : {0, 1, 100003}) {
      for (int source = 0; source < group->size(); ++source) {
        // The others' own length does not matter.
        const std::string own = object_of(group->rank().value, group->rank().value == source ? length : 5);
        EXPECT_EQ(group->broadcast_object(own, {source}), object_of(source, length)) << group->name();
      }
    }
  }
}

TEST_P(Broadcast, NamedTensorsWithTheirShapesAndDtypes) {
  for (const GroupCoordinator* group : groups()) {
    const int source = group->size() - 1;
    const int64_t from = group->ranks()[source].value;
    std::map<std::string, at::Tensor> tensors;
    if (group->rank().value == source) {
      tensors = {{"ids", numbered({2, 3}, from, at::kLong)},
                 {"half", numbered({3}, from, at::kBFloat16)},
                 {"empty", numbered({0, 4}, from)},
                 {"scalar", numbered({}, from)},
                 {"strided \xff", numbered({4, 2}, from).t()}};
    }
    const auto received = group->broadcast_tensor_dict(tensors, {source});
    ASSERT_EQ(received.size(), 5u);
    EXPECT_TRUE(same(received.at("ids"), numbered({2, 3}, from, at::kLong)));
    EXPECT_TRUE(same(received.at("half"), numbered({3}, from, at::kBFloat16)));
    EXPECT_TRUE(same(received.at("empty"), numbered({0, 4}, from)));
    EXPECT_TRUE(same(received.at("scalar"), numbered({}, from)));
    EXPECT_TRUE(same(received.at("strided \xff"), numbered({4, 2}, from).t()));
  }
}

TEST_P(Broadcast, ARankOutsideTheGroupIsAnError) {
  for (const GroupCoordinator* group : groups()) {
    EXPECT_THROW(group->broadcast(numbered({1}, 0), {group->size()}), ArgumentError);
    EXPECT_THROW(group->broadcast_object("x", {-1}), ArgumentError);
    EXPECT_THROW(group->broadcast_tensor_dict({}, {group->size()}), ArgumentError);
  }
}

INSTANTIATE_TEST_SUITE_P(AttentionGroups, Broadcast, ::testing::Values(1, 2, 3, 4, 8));

}  // namespace
}  // namespace headway::testing
