#include <gtest/gtest.h>

#include "distributed/support/parallel_test.h"
#include "headway/base/error.h"
#include "support/expect_error.h"

namespace headway::testing {
namespace {

std::vector<const GroupCoordinator*> groups_of(const ParallelState& state) {
  return {&state.world(), &state.tp(), &state.lm_head_tp(), &state.attn_dp(), &state.self()};
}

TEST(GroupLayout, GroupsAreThoseOfTheLayoutForEverySize) {
  for (int tp : divisors(world_size())) {
    for (int attn_tp : divisors(tp)) {
      const ParallelState& state = parallel_state(tp, attn_tp);
      const RankLayout& layout = state.layout();
      EXPECT_EQ(state.world().ranks(), layout.group_of(GroupKind::world, global_rank()));
      EXPECT_EQ(state.tp().ranks(), layout.group_of(GroupKind::tp, global_rank()));
      EXPECT_EQ(state.lm_head_tp().ranks(), layout.group_of(GroupKind::lm_head_tp, global_rank()));
      EXPECT_EQ(state.attn_dp().ranks(), layout.group_of(GroupKind::attn_dp, global_rank()));
      EXPECT_EQ(state.self().ranks(), RankList{global_rank()});
      for (const GroupCoordinator* group : groups_of(state)) {
        EXPECT_EQ(group->global_rank(), global_rank());
        EXPECT_EQ(group->ranks()[group->rank().value], global_rank());
        EXPECT_EQ(group->group_rank_of(global_rank()), group->rank());
      }
    }
  }
}

TEST(GroupLayout, AGroupOfOneHasNoBackend) {
  const ParallelState& state = parallel_state(1);
  for (const GroupCoordinator* group : groups_of(state)) {
    EXPECT_EQ(std::string(group->backend_name()) == "self", group->size() == 1) << group->name();
  }
}

// Fault case C09: a group that one is not in is an error, not a no-op.
TEST(GroupLayout, AGroupOneIsNotInIsAnError) {
  const GlobalRank outside{world_size()};
  EXPECT_EQ(test::error_of<ArgumentError>([&] { GroupCoordinator("tp", {outside}, global_rank(), nullptr); }),
            "global rank " + std::to_string(global_rank().value) + " is not in group tp of ranks [" +
                std::to_string(outside.value) + "]");
  EXPECT_THROW(parallel_state(1).self().group_rank_of(outside), ArgumentError);
  EXPECT_THROW(parallel_state(1).self().global_rank_of({1}), ArgumentError);
  EXPECT_THROW(parallel_state(1).self().global_rank_of({-1}), ArgumentError);
}

TEST(GroupLayout, SizesThatDoNotDivideAreRefusedOnEveryRank) {
  EXPECT_THROW(parallel_state(world_size() + 1, 1), ConfigError);
  EXPECT_THROW(parallel_state(world_size(), world_size() + 1), ConfigError);
  EXPECT_THROW(parallel_state(world_size(), 0), ConfigError);
}

TEST(GroupLayout, ASingleProcessHasGroupsOfItsOwn) {
  const auto state = ParallelState::single();
  for (const GroupCoordinator* group : groups_of(*state)) {
    EXPECT_EQ(group->size(), 1);
    EXPECT_EQ(group->global_rank(), GlobalRank{0});
    EXPECT_STREQ(group->backend_name(), "self");
  }
  EXPECT_EQ(state->launch().source, "single");
}

}  // namespace
}  // namespace headway::testing
