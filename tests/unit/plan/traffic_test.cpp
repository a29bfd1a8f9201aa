#include "headway/plan/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/plan/models.h"

namespace headway {
namespace {

struct Expected {
  Collective kind;
  GroupKind group;
  int group_size;
  std::string_view purpose;
  int64_t calls;
  int64_t bytes;
};

void expect_uses(const std::vector<CollectiveUse>& uses, const std::vector<Expected>& expected) {
  ASSERT_EQ(uses.size(), expected.size());
  for (size_t i = 0; i < uses.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "use " << i << " for " << uses[i].purpose);
    EXPECT_EQ(uses[i].kind, expected[i].kind);
    EXPECT_EQ(uses[i].group, expected[i].group);
    EXPECT_EQ(uses[i].group_size, expected[i].group_size);
    EXPECT_EQ(uses[i].purpose, expected[i].purpose);
    EXPECT_EQ(uses[i].calls, expected[i].calls);
    EXPECT_EQ(uses[i].bytes, expected[i].bytes);
  }
}

constexpr int64_t kRow = 72 * 2;  // bytes of [hidden] in BF16

TEST(Traffic, OneRankSendsNothing) {
  const Plan plan = plan_of(small_model(), layout_of(1, 1));
  EXPECT_TRUE(collectives_of(plan, plan.ranks[0], {5, 1, 100}).empty());
}

TEST(Traffic, ReplicatedDecodeStepOfThreeSequences) {
  const Plan plan = plan_of(small_model(), layout_of(4, 2));
  const Step step{3, 1, 100};
  const auto expected = [](int64_t own_rows) -> std::vector<Expected> {
    return {{Collective::all_reduce, GroupKind::tp, 4, "embedding", 1, 3 * kRow},
            {Collective::all_reduce, GroupKind::lm_head_tp, 2, "o_proj", 3, 3 * 3 * kRow},
            {Collective::all_reduce, GroupKind::tp, 4, "down_proj", 3, 3 * 3 * kRow},
            {Collective::all_gather, GroupKind::tp, 4, "LM head", 1, 3 * own_rows * 2}};
  };
  expect_uses(collectives_of(plan, plan.ranks[0], step), expected(64));
  expect_uses(collectives_of(plan, plan.ranks[1], step), expected(128));
  expect_uses(collectives_of(plan, plan.ranks[3], step), expected(321 - 256));
}

TEST(Traffic, GroupsOfOneAreLeftOut) {
  const Plan plan = plan_of(small_model(), layout_of(2, 1, VocabGroup::lm_head_tp, VocabGroup::none));
  expect_uses(collectives_of(plan, plan.ranks[1], {1, 7, 3}),
              {{Collective::all_reduce, GroupKind::tp, 2, "down_proj", 3, 3 * 7 * kRow}});
}

TEST(Traffic, VocabularyGroupsDecideWhereEmbeddingAndLogitsTravel) {
  const Plan plan = plan_of(small_model(), layout_of(4, 2, VocabGroup::lm_head_tp, VocabGroup::lm_head_tp));
  expect_uses(collectives_of(plan, plan.ranks[3], {1, 5, 2}),
              {{Collective::all_reduce, GroupKind::lm_head_tp, 2, "embedding", 1, 5 * kRow},
               {Collective::all_reduce, GroupKind::lm_head_tp, 2, "o_proj", 3, 3 * 5 * kRow},
               {Collective::all_reduce, GroupKind::tp, 4, "down_proj", 3, 3 * 5 * kRow},
               {Collective::all_gather, GroupKind::lm_head_tp, 2, "LM head", 1, 129 * 2}});
}

TEST(Traffic, TiedLmHeadWorksOnTheEmbeddingsGroup) {
  ModelConfig model = small_model();
  const ParallelConfig parallel = layout_of(3, 3, VocabGroup::lm_head_tp, VocabGroup::tp);
  const auto lm_head_group = [&] {
    const Plan plan = plan_of(model, parallel);
    return collectives_of(plan, plan.ranks[0], {}).back().group;
  };
  EXPECT_EQ(lm_head_group(), GroupKind::tp);
  model.tie_word_embeddings = true;
  EXPECT_EQ(lm_head_group(), GroupKind::lm_head_tp);
}

TEST(Traffic, ChunkInTheMiddleOfAPromptWantsNoLogits) {
  const Plan plan = plan_of(small_model(), layout_of(2, 2));
  for (const CollectiveUse& use : collectives_of(plan, plan.ranks[0], {1, 5, 2, false})) {
    EXPECT_NE(use.purpose, "LM head");
  }
}

TEST(Traffic, ReplicasWithTheirOwnSequencesGatherAndScatterAroundTheMlp) {
  const Plan plan = plan_of(small_model(), layout_of(4, 2, VocabGroup::tp, VocabGroup::tp, AttnReplicas::dp));
  const Step step{3, 1, 100};  // replica 0 owns one sequence, replica 1 two
  const auto expected = [](int64_t local, int64_t own_rows) -> std::vector<Expected> {
    return {{Collective::reduce_scatter, GroupKind::attn_dp, 2, "embedding", 1, 3 * kRow},
            {Collective::all_reduce, GroupKind::lm_head_tp, 2, "embedding", 1, local * kRow},
            {Collective::all_reduce, GroupKind::lm_head_tp, 2, "o_proj", 3, 3 * local * kRow},
            {Collective::all_gather, GroupKind::attn_dp, 2, "MLP input", 3, 3 * local * kRow},
            {Collective::reduce_scatter, GroupKind::attn_dp, 2, "down_proj", 3, 3 * 3 * kRow},
            {Collective::all_reduce, GroupKind::lm_head_tp, 2, "down_proj", 3, 3 * local * kRow},
            {Collective::all_gather, GroupKind::attn_dp, 2, "LM head", 1, local * kRow},
            {Collective::all_gather, GroupKind::tp, 4, "LM head", 1, 3 * own_rows * 2}};
  };
  expect_uses(collectives_of(plan, plan.ranks[0], step), expected(1, 64));
  expect_uses(collectives_of(plan, plan.ranks[3], step), expected(2, 65));
}

TEST(Traffic, ReplicasWithVocabulariesOfTheirOwnGatherTheRowsForTheLMHeadAlone) {
  const Plan plan = plan_of(small_model(), layout_of(4, 2, VocabGroup::lm_head_tp, VocabGroup::none, AttnReplicas::dp));
  std::vector<std::string_view> purposes;
  for (const CollectiveUse& use : collectives_of(plan, plan.ranks[2], {2, 1, 9})) purposes.push_back(use.purpose);
  EXPECT_THAT(purposes, testing::ElementsAre("embedding", "o_proj", "MLP input", "down_proj", "down_proj", "LM head"));
}

TEST(Traffic, SharesOfSequencesAddUp) {
  const Plan plan = plan_of(small_model(), layout_of(6, 2, VocabGroup::tp, VocabGroup::tp, AttnReplicas::dp));
  for (int64_t sequences = 0; sequences < 20; ++sequences) {
    int64_t sum = 0;
    for (int replica = 0; replica < 3; ++replica) {
      const int64_t local = local_sequences(plan, replica, {sequences, 1, 0});
      EXPECT_GE(local, sequences / 3);
      EXPECT_LE(local, (sequences + 2) / 3);
      sum += local;
    }
    EXPECT_EQ(sum, sequences);
  }
}

}  // namespace
}  // namespace headway
