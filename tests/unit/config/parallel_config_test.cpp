#include "headway/config/parallel_config.h"

#include <gmock/gmock.h>

#include "headway/base/error.h"
#include "support/expect_error.h"

namespace headway {
namespace {

using test::HasAll;
using ::testing::ElementsAre;

ModelConfig model_with(int64_t total_q_heads) {
  ModelConfig model;
  model.total_q_heads = total_q_heads;
  return model;
}

std::string refusal(int64_t total_q_heads, int64_t world, std::optional<int64_t> tp, std::optional<int64_t> attn_tp) {
  return test::error_of<ConfigError>([&] { resolve_parallel_config(model_with(total_q_heads), world, tp, attn_tp); });
}

TEST(ParallelConfig, LegalAttentionSizesAreTheDivisorsUpToTheQueryHeads) {
  EXPECT_THAT(legal_attn_tp(9, 10), ElementsAre(1, 2, 5));
  EXPECT_THAT(legal_attn_tp(28, 8), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(legal_attn_tp(1, 6), ElementsAre(1));
  EXPECT_THAT(legal_attn_tp(64, 12), ElementsAre(1, 2, 3, 4, 6, 12));
}

TEST(ParallelConfig, DefaultsAreTheWorldAndTheLargestLegalAttentionSize) {
  const ParallelConfig config = resolve_parallel_config(model_with(9), 10, std::nullopt, std::nullopt);
  EXPECT_EQ(config.world, 10);
  EXPECT_EQ(config.tp, 10);
  EXPECT_EQ(config.attn_tp, 5);
  EXPECT_EQ(config.embedding_group, VocabGroup::tp);
  EXPECT_EQ(config.lm_head_group, VocabGroup::tp);
  EXPECT_EQ(config.attn_replicas, AttnReplicas::replicate);
  EXPECT_EQ(resolve_parallel_config(model_with(28), 8, 4, std::nullopt).attn_tp, 4);
}

TEST(ParallelConfig, GivenValuesAreKept) {
  const ParallelConfig config = resolve_parallel_config(model_with(28), 8, 8, 4, VocabGroup::none,
                                                        VocabGroup::lm_head_tp, AttnReplicas::replicate);
  EXPECT_EQ(config.tp, 8);
  EXPECT_EQ(config.attn_tp, 4);
  EXPECT_EQ(config.embedding_group, VocabGroup::none);
  EXPECT_EQ(config.lm_head_group, VocabGroup::lm_head_tp);
}

// Fault case A01: 28 heads on 8 ranks are legal, on 29 they are not.
TEST(ParallelConfig, ARankWithoutAHeadIsRefused) {
  EXPECT_EQ(resolve_parallel_config(model_with(28), 8, 8, 8).attn_tp, 8);
  EXPECT_EQ(refusal(28, 29, 29, 29),
            "lm_head_tp: 28 query heads over 29 ranks leave rank 0 without a head; legal sizes at tp 29: 1");
  EXPECT_EQ(refusal(9, 10, std::nullopt, 10),
            "lm_head_tp: 9 query heads over 10 ranks leave rank 0 without a head; legal sizes at tp 10: 1, 2, 5");
  EXPECT_THAT(refusal(28, 8, 8, 29), HasAll("lm_head_tp", "28", "29", "legal sizes at tp 8: 1, 2, 4, 8"));
}

TEST(ParallelConfig, SizesThatDoNotDivideAreRefused) {
  EXPECT_THAT(refusal(28, 8, 8, 3), HasAll("lm_head_tp", "3", "8", "legal sizes at tp 8: 1, 2, 4, 8"));
  EXPECT_THAT(refusal(28, 8, 8, 0), HasAll("lm_head_tp", "group of 0 ranks"));
  EXPECT_THAT(refusal(28, 8, 3, std::nullopt), HasAll("TP size of 3", "world of 8"));
  EXPECT_THAT(refusal(28, 2, 4, std::nullopt), HasAll("TP size of 4", "world of 2"));
  EXPECT_THAT(refusal(28, 2, 0, std::nullopt), HasAll("TP size of 0"));
  EXPECT_THAT(refusal(28, 0, std::nullopt, std::nullopt), HasAll("world of 0"));
}

TEST(ParallelConfig, ReplicasComputeTheSameOrOwnSequences) {
  const auto resolved = [](int64_t attn_tp, AttnReplicas mode) {
    return resolve_parallel_config(model_with(4), 4, 4, attn_tp, VocabGroup::tp, VocabGroup::tp, mode);
  };
  EXPECT_EQ(resolved(2, AttnReplicas::dp).replicas(), 2);
  EXPECT_TRUE(resolved(2, AttnReplicas::dp).replicas_own_sequences());
  EXPECT_FALSE(resolved(4, AttnReplicas::dp).replicas_own_sequences());  // there is but one
  EXPECT_FALSE(resolved(2, AttnReplicas::replicate).replicas_own_sequences());
  EXPECT_THAT(test::error_of<ConfigError>([&] { resolved(2, AttnReplicas::cp); }), HasAll("\"cp\" are not served"));
}

TEST(ParallelConfig, NamesGoBothWays) {
  for (VocabGroup group : {VocabGroup::tp, VocabGroup::lm_head_tp, VocabGroup::none}) {
    EXPECT_EQ(vocab_group_from_name(name_of(group)), group);
  }
  for (AttnReplicas mode : {AttnReplicas::replicate, AttnReplicas::dp, AttnReplicas::cp}) {
    EXPECT_EQ(attn_replicas_from_name(name_of(mode)), mode);
  }
  EXPECT_EQ(name_of(VocabGroup::lm_head_tp), "lm_head_tp");
  EXPECT_EQ(name_of(AttnReplicas::cp), "cp");
  EXPECT_THAT(test::error_of<ConfigError>([] { vocab_group_from_name("TP"); }),
              HasAll("\"TP\"", "tp, lm_head_tp, none"));
  EXPECT_THAT(test::error_of<ConfigError>([] { attn_replicas_from_name(""); }), HasAll("replicate, dp, cp"));
}

}  // namespace
}  // namespace headway
