#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "distributed/layers/layer_support.h"
#include "distributed/support/parallel_test.h"
#include "headway/models/qwen2.h"
#include "headway/weights/weight_loader.h"

// Attention blocks, MLPs and whole models, sharded against the same ones on a single rank.
namespace headway {
namespace {

ModelConfig config_of(int64_t q, int64_t kv, int64_t intermediate, bool tied) {
  ModelConfig config;
  config.architecture = "Qwen2ForCausalLM";
  config.hidden_size = 24;
  config.intermediate_size = intermediate;
  config.num_layers = 2;
  config.total_q_heads = q;
  config.total_kv_heads = kv;
  config.head_dim = 4;
  config.vocab_size = 321;
  config.max_position_embeddings = 128;
  config.tie_word_embeddings = tied;
  config.sliding_window = {std::nullopt, 5};
  return config;
}

/// Two sequences of 7 and 4 tokens over blocks that are not in order.
AttentionBatch two_sequences() {
  AttentionBatch batch;
  batch.block_tables = {{3, 1}, {2}};
  batch.query_starts = {0, 7, 11};
  batch.context_lengths = {7, 4};
  for (int64_t s = 0; s < 2; ++s) {
    for (int64_t p = 0; p < batch.context_lengths[s]; ++p) {
      batch.positions.push_back(p);
      batch.slots.push_back(batch.block_tables[s][p / 4] * 4 + p % 4);
    }
  }
  return batch;
}

KVCacheView empty_cache(const HeadPartition& heads, int64_t head_dim) {
  const std::vector<int64_t> shape{4, 4, heads.local_kv_heads(), head_dim};
  return {testing::on_device(at::zeros(shape, at::kFloat)), testing::on_device(at::zeros(shape, at::kFloat))};
}

struct Case {
  int64_t q;
  int64_t kv;
  int64_t intermediate;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.q << "/" << c.kv << " mlp " << c.intermediate;
}

/// Runs for every size of the attention group that this world and the heads allow.
class Qwen2Blocks : public ::testing::TestWithParam<Case> {
 protected:
  static std::vector<const ParallelState*> states() {
    std::vector<const ParallelState*> found;
    for (int size : testing::divisors(testing::world_size())) {
      if (size <= GetParam().q) found.push_back(&testing::parallel_state(size));
    }
    return found;
  }
  static ModelConfig config(bool tied = false) {
    return config_of(GetParam().q, GetParam().kv, GetParam().intermediate, tied);
  }

  static at::Tensor attention_output(const ParallelState& state) {
    Qwen2Attention attention(config(), 1, state);
    testing::fill_from_full_tensors(attention);
    KVCacheView cache = empty_cache(attention.heads(), 4);
    const AttentionBatch batch = two_sequences();
    const RotaryAngles angles = RotaryEmbedding(config().rope, 4).angles(batch, testing::device());
    return attention.forward(testing::random_matrix(11, 24, 3), angles, batch, cache);
  }

  static at::Tensor mlp_output(const ParallelState& state) {
    Qwen2MLP mlp(config(), state, false);
    testing::fill_from_full_tensors(mlp);
    return mlp.forward(testing::random_matrix(5, 24, 4), {});
  }

  static at::Tensor logits(const ParallelState& state, VocabGroup embedding, VocabGroup lm_head, bool tied) {
    ParallelConfig parallel;
    parallel.embedding_group = embedding;
    parallel.lm_head_group = lm_head;
    const auto model = build_model(config(tied), parallel, state);
    testing::fill_from_full_tensors(*model);
    if (tied) copy_table_to_head(*model);
    std::vector<KVCacheView> caches = model->allocate_kv_cache(4, 4);
    return model->compute_logits(
        model->forward(testing::on_device(at::arange(11, at::kLong) * 29), two_sequences(), caches));
  }

  /// A tied head with a table of its own gets the embedding's rows, as the loader's alias does.
  static void copy_table_to_head(CausalLM& model) {
    for (const auto& [name, parameter] : model.named_parameters()) {
      if (name != "lm_head.weight") continue;
      const uint64_t seed = std::hash<std::string>{}("model.embed_tokens.weight/");
      load_section(*parameter, testing::random_tensor(parameter->slices.front().total_shape, seed) * 0.2);
    }
  }
};

TEST_P(Qwen2Blocks, AttentionEqualsTheUnshardedOne) {
  const at::Tensor expected = attention_output(*ParallelState::single());
  for (const ParallelState* state : states()) {
    const at::Tensor actual = attention_output(*state);
    EXPECT_TRUE(actual.allclose(expected, 1e-5, 1e-5))
        << state->lm_head_tp().size() << " ranks: " << (actual - expected).abs().max();
  }
}

TEST_P(Qwen2Blocks, MlpEqualsTheUnshardedOne) {
  const at::Tensor expected = mlp_output(*ParallelState::single());
  EXPECT_TRUE(mlp_output(testing::parallel_state(1)).allclose(expected, 1e-5, 1e-5));
}

// Fault cases A08 and A14: attention, MLP, embedding and LM head on groups of their own.
TEST_P(Qwen2Blocks, LogitsEqualTheUnshardedOnesForEveryChoiceOfVocabularyGroups) {
  const std::vector<VocabGroup> groups{VocabGroup::tp, VocabGroup::lm_head_tp, VocabGroup::none};
  for (bool tied : {false, true}) {
    const at::Tensor expected = logits(*ParallelState::single(), VocabGroup::tp, VocabGroup::tp, tied);
    ASSERT_EQ(expected.size(1), 321);
    for (const ParallelState* state : states()) {
      for (VocabGroup embedding : groups) {
        for (VocabGroup lm_head : groups) {
          const at::Tensor actual = logits(*state, embedding, lm_head, tied);
          EXPECT_TRUE(actual.allclose(expected, 1e-4, 1e-4))
              << state->lm_head_tp().size() << " ranks, embedding " << name_of(embedding) << ", LM head "
              << name_of(lm_head) << (tied ? ", tied: " : ": ") << (actual - expected).abs().max();
        }
      }
    }
  }
}

// Fault case A08: projections and KV cache both follow the attention group, not the TP group.
TEST(Qwen2Heads, ProjectionsAndCacheFollowTheAttentionGroup) {
  if (testing::world_size() != 4) GTEST_SKIP() << "its values are those of 4 ranks with attention over 2";
  ModelConfig config = config_of(8, 4, 48, false);
  const auto model = build_model(config, {}, testing::parallel_state(2));
  testing::allocate(*model);
  EXPECT_EQ(model->heads().local_q_heads(), 4);
  EXPECT_EQ(model->heads().local_kv_heads(), 2);
  EXPECT_EQ(model->allocate_kv_cache(3, 16).front().keys.sizes(), (std::vector<int64_t>{3, 16, 2, 4}));
  for (const auto& [name, parameter] : model->named_parameters()) {
    if (!name.ends_with("qkv_proj.weight")) continue;
    EXPECT_EQ(parameter->shape, (std::vector<int64_t>{(4 + 2 + 2) * 4, 24}));
  }
}

// Fault case A02: more ranks than KV heads, with heads of 128. Each rank holds one whole head, two ranks hold each.
TEST(Qwen2Heads, RanksShareWholeKvHeads) {
  if (testing::world_size() != 8) GTEST_SKIP() << "its values are those of 8 ranks";
  ModelConfig config = config_of(8, 4, 48, false);
  config.head_dim = 128;
  const auto logits = [&config](const ParallelState& state) {
    const auto model = build_model(config, {}, state);
    testing::fill_from_full_tensors(*model);
    const int64_t local_q = 8 / state.lm_head_tp().size();
    const int64_t local_kv = std::max(4 / state.lm_head_tp().size(), 1);
    EXPECT_EQ(model->heads().kv_heads.begin, state.lm_head_tp().rank().value / 2);
    for (const auto& [name, parameter] : model->named_parameters()) {
      if (!name.ends_with("qkv_proj.weight")) continue;
      EXPECT_EQ(parameter->shape, (std::vector<int64_t>{(local_q + 2 * local_kv) * 128, 24}));
      EXPECT_EQ(parameter->slices.at(1).range.size(), local_kv * 128);  // k
      EXPECT_EQ(parameter->slices.at(2).range.size(), local_kv * 128);  // v
    }
    std::vector<KVCacheView> caches = model->allocate_kv_cache(4, 4);
    return model->compute_logits(
        model->forward(testing::on_device(at::arange(11, at::kLong) * 29), two_sequences(), caches));
  };
  const at::Tensor expected = logits(*ParallelState::single());
  const at::Tensor actual = logits(testing::parallel_state(8));
  EXPECT_GT(expected.abs().max().item<float>(), 0.1);
  EXPECT_LE((actual - expected).abs().max().item<float>(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Qwen2Blocks,
                         ::testing::Values(Case{4, 2, 48}, Case{8, 4, 48}, Case{9, 3, 37}, Case{14, 2, 5},
                                           Case{28, 4, 64}));

}  // namespace
}  // namespace headway
