#include "headway/parallel/rank_layout.h"

#include <gtest/gtest.h>

#include <string>

#include "headway/base/error.h"

namespace headway {
namespace {

using Lists = std::vector<RankList>;

// Fault case C07.
TEST(RankLayout, WorldOfEightTpOfFourAttentionOfTwo) {
  const RankLayout layout(8, 4, 2);
  EXPECT_EQ(layout.groups(GroupKind::world), (Lists{{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}}));
  EXPECT_EQ(layout.groups(GroupKind::tp), (Lists{{{0}, {1}, {2}, {3}}, {{4}, {5}, {6}, {7}}}));
  EXPECT_EQ(layout.groups(GroupKind::lm_head_tp), (Lists{{{0}, {1}}, {{2}, {3}}, {{4}, {5}}, {{6}, {7}}}));
  EXPECT_EQ(layout.groups(GroupKind::attn_dp), (Lists{{{0}, {2}}, {{1}, {3}}, {{4}, {6}}, {{5}, {7}}}));
  EXPECT_EQ(layout.group_of(GroupKind::attn_dp, {6}), (RankList{{4}, {6}}));
  EXPECT_EQ(layout.replicas(), 2);
}

TEST(RankLayout, AnOddTpWithOneAttentionRank) {
  const RankLayout layout(3, 3, 1);
  EXPECT_EQ(layout.groups(GroupKind::lm_head_tp), (Lists{{{0}}, {{1}}, {{2}}}));
  EXPECT_EQ(layout.groups(GroupKind::attn_dp), (Lists{{{0}, {1}, {2}}}));
}

/// Where rank = outer * tp + replica * attn_tp + a stands in its group of a kind.
int expected_position(GroupKind kind, int rank, int tp, int attn_tp) {
  switch (kind) {
    case GroupKind::world:
      return rank;
    case GroupKind::tp:
      return rank % tp;
    case GroupKind::lm_head_tp:
      return rank % attn_tp;
    case GroupKind::attn_dp:
      return rank % tp / attn_tp;
  }
  return -1;
}

TEST(RankLayout, EveryRankIsInOneGroupOfAKindAtItsPlaceForAllSizesUpTo64) {
  for (int world = 1; world <= 64; ++world) {
    for (int tp = 1; tp <= world; ++tp) {
      for (int attn_tp = 1; world % tp == 0 && attn_tp <= tp; ++attn_tp) {
        if (tp % attn_tp != 0) continue;
        const RankLayout layout(world, tp, attn_tp);
        for (GroupKind kind : {GroupKind::world, GroupKind::tp, GroupKind::lm_head_tp, GroupKind::attn_dp}) {
          std::vector<int> seen(world, 0);
          for (const RankList& group : layout.groups(kind)) {
            for (size_t i = 0; i < group.size(); ++i) {
              ++seen.at(group[i].value);
              ASSERT_EQ(static_cast<int>(i), expected_position(kind, group[i].value, tp, attn_tp));
            }
          }
          ASSERT_EQ(seen, std::vector<int>(world, 1)) << world << "/" << tp << "/" << attn_tp << " " << name_of(kind);
        }
      }
    }
  }
}

std::string refusal(int world, int tp, int attn_tp) {
  try {
    RankLayout(world, tp, attn_tp);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RankLayout, RefusesSizesThatDoNotDivide) {
  EXPECT_EQ(refusal(8, 3, 1), "tp: 3 ranks do not divide a world of 8");
  EXPECT_EQ(refusal(8, 4, 3), "lm_head_tp: 3 ranks do not divide tp 4");
  EXPECT_EQ(refusal(0, 1, 1), "group sizes must be positive: world 0, tp 1, lm_head_tp 1");
  EXPECT_THROW(RankLayout(4, 2, 1).group_of(GroupKind::tp, {4}), ArgumentError);
}

}  // namespace
}  // namespace headway
