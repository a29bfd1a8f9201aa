#include "headway/plan/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headway/base/error.h"
#include "headway/plan/balance.h"
#include "headway/plan/peers.h"
#include "unit/plan/models.h"

namespace headway {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// One byte, operation and sent byte per unit of time, so that times can be counted by hand.
constexpr MachineFigures kMemoryBound{"test", 1.0, 1e30, 1e-30, 1e30};
constexpr MachineFigures kNetworkBound{"test", 1e30, 1e30, 7.0, 1.0};

TEST(Cost, PhasesReadTheirWeightsAndCachedKeysOnce) {
  const Plan plan = plan_of(small_model(), layout_of(2, 2));
  const StepCost cost = cost_of(plan, kMemoryBound, {3, 1, 50});
  const ParameterBytes& small = plan.ranks[0].parameters;
  const ParameterBytes& large = plan.ranks[1].parameters;
  const double kv = 3 * 50 * plan.ranks[1].kv_bytes_per_token;
  EXPECT_DOUBLE_EQ(cost.attention.slowest_s, large.qkv_proj + large.o_proj + kv);
  EXPECT_DOUBLE_EQ(cost.attention.mean_s, (small.qkv_proj + small.o_proj + large.qkv_proj + large.o_proj) / 2.0 + kv);
  EXPECT_DOUBLE_EQ(cost.mlp.slowest_s, std::max(small.mlp, large.mlp));
  EXPECT_DOUBLE_EQ(cost.mlp.mean_s, (small.mlp + large.mlp) / 2.0);
  EXPECT_DOUBLE_EQ(cost.lm_head.slowest_s, 192 * 72 * 2);
  EXPECT_GT(cost.uneven_cost(), 0);
}

TEST(Cost, TiedLmHeadReadsTheTableAllTheSame) {
  ModelConfig model = small_model();
  model.tie_word_embeddings = true;
  const Plan plan = plan_of(model, layout_of(3, 3));
  EXPECT_EQ(plan.ranks[0].parameters.lm_head, 0);
  EXPECT_DOUBLE_EQ(cost_of(plan, kMemoryBound, {}).lm_head.slowest_s, 128 * 72 * 2);
}

TEST(Cost, LongPromptsAreBoundByOperations) {
  const Plan plan = plan_of(small_model(), layout_of(1, 1));
  constexpr MachineFigures compute_bound{"test", 1e30, 1.0, 1e-30, 1e30};
  const StepCost cost = cost_of(plan, compute_bound, {1, 40, 20});
  EXPECT_DOUBLE_EQ(cost.mlp.slowest_s, 2.0 * 3 * (3 * 200 * 72) * 40);
  const double projections = 2.0 * 3 * ((9 + 3 + 3) * 8 * 73 + 72 * 72) * 40;
  EXPECT_DOUBLE_EQ(cost.attention.slowest_s, projections + 4.0 * 3 * 9 * 8 * 20 * 40);
  EXPECT_DOUBLE_EQ(cost.lm_head.slowest_s, 2.0 * 321 * 72);  // the last token alone
}

TEST(Cost, CollectivesTakeRoundsAndSentBytes) {
  const auto seconds = [](Collective kind, int size) {
    return collective_seconds({kind, GroupKind::tp, size, "", 2, 100}, kNetworkBound);
  };
  EXPECT_DOUBLE_EQ(seconds(Collective::all_reduce, 2), 2 * 7 + 100);
  EXPECT_DOUBLE_EQ(seconds(Collective::all_reduce, 5), 2 * 3 * 7 + 2 * 100 * 4 / 5.0);
  EXPECT_DOUBLE_EQ(seconds(Collective::all_gather, 4), 2 * 2 * 7 + 300);
  EXPECT_DOUBLE_EQ(seconds(Collective::reduce_scatter, 4), 2 * 2 * 7 + 75);
  EXPECT_DOUBLE_EQ(seconds(Collective::all_to_all, 8), 2 * 3 * 7 + 87.5);
}

TEST(Cost, NamesTheMachinesThatItKnows) {
  EXPECT_GT(machine_figures("gpu").memory_bytes_per_s, machine_figures("cpu").memory_bytes_per_s);
  EXPECT_THAT([] { machine_figures("abacus"); },
              ThrowsMessage<ConfigError>(testing::AllOf(HasSubstr("abacus"), HasSubstr("cpu, gpu"))));
}

TEST(Balance, NamesWhatIsUnevenWithItsSizes) {
  const std::vector<Unevenness> uneven = uneven_parts(plan_of(small_model(), layout_of(2, 2)));
  ASSERT_FALSE(uneven.empty());
  EXPECT_EQ(uneven[0].what, "query heads");
  EXPECT_EQ(uneven[0].largest, 5);
  EXPECT_EQ(uneven[0].smallest, 4);
  EXPECT_DOUBLE_EQ(uneven[0].mean, 4.5);
  EXPECT_NEAR(uneven[0].excess(), 0.1111, 1e-4);
  EXPECT_TRUE(uneven_parts(plan_of(qwen2_7b(), layout_of(4, 4))).empty());
}

TEST(Balance, CountsCopiedKvHeadsInTheGroupAndInLaterReplicas) {
  const Plan plan = plan_of(small_model(), layout_of(4, 2));
  std::vector<int64_t> copies;
  for (const RankPlan& rank : plan.ranks) copies.push_back(copied_kv_heads(rank));
  EXPECT_THAT(copies, testing::ElementsAre(0, 1, 2, 2));
}

TEST(Balance, ReplicasWithTheirOwnSequencesCacheNoTokenTwice) {
  const auto kv_of_replicas = [](AttnReplicas mode) {
    const Plan plan = plan_of(small_model(), layout_of(4, 2, VocabGroup::tp, VocabGroup::tp, mode));
    return duplicates(plan).front().extra_kv_bytes_per_token;
  };
  EXPECT_GT(kv_of_replicas(AttnReplicas::replicate), 0);
  EXPECT_EQ(kv_of_replicas(AttnReplicas::dp), 0);
}

PeerVerdict verdict_of(std::string_view engine, const ModelConfig& model, const ParallelConfig& parallel) {
  for (const PeerVerdict& verdict : peer_verdicts(model, parallel)) {
    if (verdict.engine == engine) return verdict;
  }
  return {};
}

TEST(Peers, VllmDividesQueryHeadsKvHeadsColumnsAndPaddedVocabulary) {
  ModelConfig model = model_with_heads(24, 4);
  model.intermediate_size = 240;
  model.vocab_size = 384;
  const auto vllm = [&](int64_t tp) { return verdict_of("vLLM", model, layout_of(tp, tp)); };
  for (int64_t served : {1, 2, 4, 8}) EXPECT_TRUE(vllm(served).served) << served;
  EXPECT_THAT(vllm(5).reason, HasSubstr("24 query heads do not divide by 5"));
  EXPECT_THAT(vllm(6).reason, HasSubstr("4 KV heads against 6 ranks"));
  EXPECT_THAT(vllm(3).reason, HasSubstr("4 KV heads against 3 ranks"));
  model.intermediate_size = 236;
  EXPECT_THAT(vllm(8).reason, HasSubstr("236 MLP columns do not divide by 8"));
  model = model_with_heads(24, 24);
  model.intermediate_size = 240;
  EXPECT_THAT(vllm(1).reason, HasSubstr("padded from 321 to 384"));
  model.vocab_size = 256;
  EXPECT_THAT(vllm(3).reason, HasSubstr("a vocabulary of 256, padded to 256, does not divide by 3"));
}

TEST(Peers, OnlySglangHasAnAttentionGroupAndOnlyWithSequencesOfItsOwn) {
  ModelConfig model = qwen2_7b();
  const ParallelConfig replicate = layout_of(8, 4);
  const ParallelConfig dp = layout_of(8, 4, VocabGroup::tp, VocabGroup::tp, AttnReplicas::dp);
  EXPECT_FALSE(verdict_of("vLLM", model, replicate).served);
  EXPECT_THAT(verdict_of("vLLM", model, replicate).reason, HasSubstr("28 query heads do not divide by 8"));
  EXPECT_FALSE(verdict_of("vLLM", model, dp).served);
  EXPECT_FALSE(verdict_of("SGLang", model, replicate).served);
  EXPECT_TRUE(verdict_of("SGLang", model, dp).served);
}

SearchOptions options_for(int64_t world, Objective objective) {
  SearchOptions options;
  options.world = world;
  options.objective = objective;
  options.figures = machine_figures("gpu");
  options.workload = {16, 1000, 512, 4096};
  return options;
}

TEST(Search, TriesEveryLegalLayoutOnce) {
  const std::vector<Candidate> found = search_layouts(qwen2_7b(), options_for(4, Objective::latency));
  // attn_tp 4 and 1: {tp, none} squared; attn_tp 2: all three groups squared.
  EXPECT_EQ(found.size(), 4U + 9U + 4U);
  for (const Candidate& candidate : found) {
    EXPECT_EQ(candidate.plan.parallel.tp, 4);
    EXPECT_EQ(4 % candidate.plan.parallel.attn_tp, 0);
  }
}

TEST(Search, LeavesOutAttentionGroupsThatGiveARankNoHead) {
  for (const Candidate& candidate : search_layouts(small_model(), options_for(18, Objective::latency))) {
    EXPECT_LE(candidate.plan.parallel.attn_tp, 9);
  }
}

TEST(Search, KeepsGroupsThatWereAskedFor) {
  SearchOptions options = options_for(4, Objective::memory);
  options.embedding_group = VocabGroup::none;
  options.lm_head_group = VocabGroup::lm_head_tp;
  const std::vector<Candidate> found = search_layouts(qwen2_7b(), options);
  EXPECT_EQ(found.size(), 3U);
  for (const Candidate& candidate : found) {
    EXPECT_EQ(candidate.plan.parallel.embedding_group, VocabGroup::none);
    EXPECT_EQ(candidate.plan.parallel.lm_head_group, VocabGroup::lm_head_tp);
  }
}

TEST(Search, LatencyPutsTheShortestStepFirstToAPercent) {
  const std::vector<Candidate> found = search_layouts(qwen2_7b(), options_for(8, Objective::latency));
  for (const Candidate& candidate : found) {
    EXPECT_LE(found.front().decode_one.total_s(), candidate.decode_one.total_s() * 1.01);
  }
  EXPECT_LT(found.front().decode_one.total_s(), found.back().decode_one.total_s());
}

TEST(Search, MemoryPutsTheMostKvTokensFirst) {
  SearchOptions options = options_for(8, Objective::memory);
  options.memory = RankMemory{int64_t{24} << 30, 0};
  options.attn_replicas = {AttnReplicas::replicate, AttnReplicas::dp};
  const std::vector<Candidate> found = search_layouts(qwen2_7b(), options);
  for (const Candidate& candidate : found) EXPECT_GE(*found.front().kv_tokens, *candidate.kv_tokens);
  EXPECT_EQ(found.front().plan.parallel.attn_replicas, AttnReplicas::dp);
}

TEST(Search, ThroughputLimitsTheBatchToWhatMemoryHolds) {
  SearchOptions options = options_for(4, Objective::throughput);
  const Plan plan = plan_of(qwen2_7b(), layout_of(4, 4));
  options.workload.sequences = 1000;
  options.memory = RankMemory{plan.ranks[0].parameters.total() + 7500 * plan.ranks[0].kv_bytes_per_token, 0};
  const std::vector<Candidate> found = search_layouts(qwen2_7b(), options);
  EXPECT_EQ(found.front().plan.parallel.attn_tp, 4);
  EXPECT_EQ(found.front().sequences, 7);  // of 1000 cached tokens each
  EXPECT_FALSE(found.back().fits);
  EXPECT_EQ(found.back().decode_tokens_per_s, 0);
}

TEST(Search, NamesItsObjectives) {
  EXPECT_EQ(objective_from_name("throughput"), Objective::throughput);
  EXPECT_THAT([] { objective_from_name("beauty"); },
              ThrowsMessage<ConfigError>(testing::AllOf(HasSubstr("beauty"), HasSubstr("latency"))));
}

}  // namespace
}  // namespace headway
