#include "headway/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headway/base/error.h"
#include "headway/plan/balance.h"
#include "unit/plan/models.h"

namespace headway {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

int64_t total_bytes(const Plan& plan) {
  int64_t total = 0;
  for (const RankPlan& rank : plan.ranks) total += rank.parameters.total();
  return total;
}

TEST(Plan, KnowsQwen2SevenBillionParameters) {
  const Plan plan = plan_of(qwen2_7b(), layout_of(1, 1));
  EXPECT_EQ(plan.ranks.front().parameters.total(), 2 * int64_t{7615616512});  // as published, in BF16
  EXPECT_EQ(plan.ranks.front().kv_bytes_per_token, 57344);
}

TEST(Plan, CountsEachPartByHand) {
  // Rank 1 of 2: query heads 4..8, KV heads 1..2, columns 128..199 and rows 192..320 (granules of 64).
  const Plan plan = plan_of(small_model(), layout_of(2, 2));
  const RankPlan& rank = plan.ranks[1];
  EXPECT_EQ(rank.heads.q_heads, (Range{4, 9}));
  EXPECT_EQ(rank.heads.kv_heads, (Range{1, 3}));
  EXPECT_EQ(rank.mlp_columns, (Range{128, 200}));
  EXPECT_EQ(rank.embedding_rows, (Range{192, 321}));
  EXPECT_EQ(rank.lm_head_rows, (Range{192, 321}));
  EXPECT_EQ(rank.parameters.embedding, 129 * 72 * 2);
  EXPECT_EQ(rank.parameters.qkv_proj, 3 * (5 + 2 + 2) * 8 * (72 + 1) * 2);
  EXPECT_EQ(rank.parameters.o_proj, 3 * 72 * 40 * 2);
  EXPECT_EQ(rank.parameters.mlp, 3 * 3 * 72 * 72 * 2);
  EXPECT_EQ(rank.parameters.norms, 7 * 72 * 2);
  EXPECT_EQ(rank.parameters.lm_head, 129 * 72 * 2);
  EXPECT_EQ(rank.kv_bytes_per_token, 3 * 2 * 2 * 8 * 2);
}

TEST(Plan, CountsInTheDtypeThatIsServed) {
  const Plan half = make_plan(small_model(), layout_of(3, 3), DType::F16);
  const Plan full = make_plan(small_model(), layout_of(3, 3), DType::F32);
  EXPECT_EQ(full.ranks[2].parameters.total(), 2 * half.ranks[2].parameters.total());
  EXPECT_EQ(full.ranks[2].kv_bytes_per_token, 2 * half.ranks[2].kv_bytes_per_token);
}

TEST(Plan, DtypeIsTheOneWantedElseTheConfigsElseF32) {
  ModelConfig model = small_model();
  EXPECT_EQ(planned_dtype(model, DType::F16), DType::F16);
  EXPECT_EQ(planned_dtype(model, std::nullopt), DType::BF16);
  model.dtype.reset();
  EXPECT_EQ(planned_dtype(model, std::nullopt), DType::F32);
}

TEST(Plan, TiedTableIsOneTensorOnlyInOneGroup) {
  ModelConfig model = small_model();
  model.tie_word_embeddings = true;
  const auto lm_head_bytes = [&](ParallelConfig parallel) {
    return plan_of(model, parallel).ranks[1].parameters.lm_head;
  };
  EXPECT_EQ(lm_head_bytes(layout_of(4, 2)), 0);
  EXPECT_EQ(lm_head_bytes(layout_of(4, 2, VocabGroup::none, VocabGroup::none)), 0);
  EXPECT_EQ(lm_head_bytes(layout_of(4, 4, VocabGroup::tp, VocabGroup::lm_head_tp)), 0);  // the same ranks
  EXPECT_EQ(lm_head_bytes(layout_of(4, 2, VocabGroup::tp, VocabGroup::lm_head_tp)), (321 - 192) * 72 * 2);
  EXPECT_EQ(lm_head_bytes(layout_of(4, 2, VocabGroup::tp, VocabGroup::none)), 321 * 72 * 2);
  model.tie_word_embeddings = false;
  EXPECT_GT(lm_head_bytes(layout_of(4, 2)), 0);
}

TEST(Plan, ReplicasHoldTheSameHeadsAndOtherColumns) {
  const Plan plan = plan_of(small_model(), layout_of(6, 3));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(plan.ranks[rank].heads.q_heads, plan.ranks[rank + 3].heads.q_heads);
    EXPECT_EQ(plan.ranks[rank].replica, 0);
    EXPECT_EQ(plan.ranks[rank + 3].replica, 1);
    EXPECT_NE(plan.ranks[rank].mlp_columns, plan.ranks[rank + 3].mlp_columns);
  }
}

// Fault case A01.
TEST(Plan, ServesTwentyEightHeadsOnEightRanksAndRefusesTwentyNine) {
  const ModelConfig model = model_with_heads(28, 4);
  std::vector<int64_t> heads;
  for (const RankPlan& rank : plan_of(model, layout_of(8, 8)).ranks) heads.push_back(rank.heads.local_q_heads());
  EXPECT_THAT(heads, testing::ElementsAre(3, 4, 3, 4, 3, 4, 3, 4));
  EXPECT_THAT([&] { plan_of(model, layout_of(29, 29)); },
              ThrowsMessage<ConfigError>(testing::AllOf(HasSubstr("28"), HasSubstr("29"), HasSubstr("lm_head_tp"))));
}

TEST(Plan, RefusesWhatItHasNoRulesFor) {
  ModelConfig model = small_model();
  EXPECT_THAT([&] { plan_of(model, layout_of(2, 1, VocabGroup::tp, VocabGroup::tp, AttnReplicas::cp)); },
              ThrowsMessage<ConfigError>(HasSubstr("cp")));
  EXPECT_THAT([&] { plan_of(model, layout_of(4, 3)); }, ThrowsMessage<ConfigError>(HasSubstr("tp 4")));
  model.architecture = "MixtralForCausalLM";
  EXPECT_THAT([&] { plan_of(model, layout_of(1, 1)); },
              ThrowsMessage<ConfigError>(testing::AllOf(HasSubstr("Mixtral"), HasSubstr("Qwen2ForCausalLM"))));
}

TEST(KvCapacity, IsWhatRemainsBesideTheParameters) {
  const Plan plan = plan_of(small_model(), layout_of(2, 2));
  const RankPlan& rank = plan.ranks[1];
  const int64_t bytes = rank.parameters.total() + 10 * rank.kv_bytes_per_token;
  EXPECT_EQ(kv_token_capacity(rank, {bytes, 0}), 10);
  EXPECT_EQ(kv_token_capacity(rank, {bytes - 1, 0}), 9);
  EXPECT_EQ(kv_token_capacity(rank, {bytes, rank.kv_bytes_per_token}), 9);
  EXPECT_EQ(kv_token_capacity(rank, {5, 0}), 0);
  EXPECT_EQ(kv_token_capacity(plan, {bytes, 0}), std::min(kv_token_capacity(plan.ranks[0], {bytes, 0}), int64_t{10}));
  EXPECT_TRUE(parameters_fit(plan, {plan.ranks[0].parameters.total(), 0}));  // the fuller one
  EXPECT_FALSE(parameters_fit(plan, {plan.ranks[0].parameters.total() - 1, 0}));
}

// Fault case C19: ranks with room for different numbers of tokens use the smallest, replicas that own sequences too.
TEST(KvCapacity, FollowsTheFullestRankAndAddsUpOverReplicasWithTheirOwnSequences) {
  const RankMemory memory{200000, 0};
  const Plan shared = plan_of(small_model(), layout_of(4, 2));
  const Plan owned = plan_of(small_model(), layout_of(4, 2, VocabGroup::tp, VocabGroup::tp, AttnReplicas::dp));
  int64_t smallest = kv_token_capacity(shared.ranks[0], memory);
  for (const RankPlan& rank : shared.ranks) smallest = std::min(smallest, kv_token_capacity(rank, memory));
  EXPECT_LT(smallest, kv_token_capacity(shared.ranks[0], memory));
  EXPECT_EQ(kv_token_capacity(shared, memory), smallest);
  EXPECT_EQ(kv_token_capacity(owned, memory), 2 * smallest);
}

struct LayoutCase {
  int64_t q_heads, kv_heads, tp, attn_tp;
};

class EveryLayout : public testing::TestWithParam<std::tuple<LayoutCase, bool, VocabGroup, VocabGroup>> {};

TEST_P(EveryLayout, DuplicatesExplainEveryByteBeyondOneModel) {
  const auto& [sizes, tied, embedding, lm_head] = GetParam();
  ModelConfig model = model_with_heads(sizes.q_heads, sizes.kv_heads);
  model.tie_word_embeddings = tied;
  const Plan plan = plan_of(model, layout_of(sizes.tp, sizes.attn_tp, embedding, lm_head));
  int64_t extra = 0;
  int64_t extra_kv = 0;
  for (const Duplicate& duplicate : duplicates(plan)) {
    extra += duplicate.extra_bytes;
    extra_kv += duplicate.extra_kv_bytes_per_token;
  }
  const Plan whole = plan_of(model, layout_of(1, 1));
  EXPECT_EQ(total_bytes(plan) - total_bytes(whole), extra);
  int64_t kv = 0;
  for (const RankPlan& rank : plan.ranks) kv += rank.kv_bytes_per_token;
  EXPECT_EQ(kv - whole.ranks.front().kv_bytes_per_token, extra_kv);
}

INSTANTIATE_TEST_SUITE_P(Sizes, EveryLayout,
                         testing::Combine(testing::Values(LayoutCase{9, 3, 2, 2}, LayoutCase{9, 3, 6, 3},
                                                          LayoutCase{28, 4, 8, 8}, LayoutCase{28, 4, 8, 4},
                                                          LayoutCase{14, 2, 14, 14}, LayoutCase{12, 2, 4, 1},
                                                          LayoutCase{28, 4, 3, 3}),
                                          testing::Bool(),
                                          testing::Values(VocabGroup::tp, VocabGroup::lm_head_tp, VocabGroup::none),
                                          testing::Values(VocabGroup::tp, VocabGroup::lm_head_tp, VocabGroup::none)));

}  // namespace
}  // namespace headway
