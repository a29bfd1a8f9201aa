#include <gtest/gtest.h>

#include <string>

#include "distributed/parallel/group_support.h"
#include "headway/base/error.h"
#include "headway/parallel/message_queue.h"
#include "support/expect_error.h"

namespace headway::testing {
namespace {

class GroupQueue : public GroupTest {};

std::string message(const GroupCoordinator& group, int number) {
  return group.name() + " " + std::to_string(group.ranks()[0].value) + " " + std::to_string(number) +
         std::string(number * 10'000, static_cast<char>('a' + number));
}

MessageQueueOptions on_one_host() {
  MessageQueueOptions options;
  options.local_ranks = world_size();
  return options;
}

TEST_P(GroupQueue, CarriesMessagesFromAnyMemberToTheOthersOfItsGroup) {
  for (const GroupCoordinator* group : groups()) {
    for (int writer : {0, group->size() - 1}) {
      const auto queue = make_message_queue(*group, GroupRank{writer}, on_one_host());
      for (int number = 0; number < 6; ++number) {
        if (group->rank().value == writer) {
          queue->broadcast(message(*group, number));
        } else {
          ASSERT_EQ(queue->receive(), message(*group, number)) << group->name();
        }
      }
      group->barrier();
    }
  }
}

TEST_P(GroupQueue, RefusesTheOtherSidesCalls) {
  const GroupCoordinator& group = parallel_state(GetParam()).lm_head_tp();
  const auto queue = make_message_queue(group, GroupRank{0});
  if (group.is_first()) {
    EXPECT_THROW(queue->receive(), ArgumentError);
  } else {
    EXPECT_THROW(queue->broadcast("x"), ArgumentError);
  }
  group.barrier();
  EXPECT_THROW(make_message_queue(group, GroupRank{group.size()}), ArgumentError);
}

INSTANTIATE_TEST_SUITE_P(AttentionGroups, GroupQueue, ::testing::Values(1, 2, 3, 4, 8));

}  // namespace
}  // namespace headway::testing
