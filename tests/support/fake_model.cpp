#include "support/fake_model.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <limits>

namespace headway::testing {
namespace {

constexpr uint32_t kStart = 2166136261u;
constexpr int64_t kPrime = 16777619;

uint32_t extend(uint32_t hash, int64_t token) {
  return (hash ^ static_cast<uint32_t>(token)) * kPrime;
}

float logit(uint32_t hash, int64_t token) {
  return static_cast<float>(extend(extend(hash, token), 7 * token) >> 8) / static_cast<float>(1 << 21) - 4;
}

ModelConfig fake_config(std::vector<int64_t> eos_token_ids) {
  ModelConfig config;
  config.num_layers = 1;
  config.total_q_heads = 2;
  config.total_kv_heads = 1;
  config.head_dim = 3;
  config.vocab_size = kFakeVocab;
  config.max_position_embeddings = 256;
  config.eos_token_ids = std::move(eos_token_ids);
  return config;
}

}  // namespace

std::vector<float> fake_logits(const std::vector<int32_t>& tokens) {
  uint32_t hash = kStart;
  for (int32_t token : tokens) hash = extend(hash, token);
  std::vector<float> logits;
  for (int64_t token = 0; token < kFakeVocab; ++token) logits.push_back(logit(hash, token));
  return logits;
}

FakeModel::FakeModel(std::vector<int64_t> eos_token_ids)
    : CausalLM(fake_config(std::move(eos_token_ids)), HeadPartition::of({2, 1}, 1, {0})) {
  parameter("weight", {1}, {})->tensor = at::empty({1}, at::kFloat);  // says dtype and device
}

at::Tensor FakeModel::forward(const at::Tensor& token_ids, const AttentionBatch& batch,
                              std::vector<KVCacheView>& caches) {
  const int64_t* ids = token_ids.const_data_ptr<int64_t>();
  calls.push_back({{ids, ids + token_ids.numel()}, 0});
  const int64_t block_size = caches[0].block_size();
  const int64_t stride = caches[0].keys.stride(1);
  float* keys = caches[0].keys.data_ptr<float>();
  for (int64_t t = 0; t < batch.num_tokens(); ++t) keys[batch.slots[t] * stride] = static_cast<float>(ids[t]);

  at::Tensor hidden = at::empty({batch.num_tokens(), 1}, at::kLong);
  for (int64_t s = 0; s < batch.num_sequences(); ++s) {
    const int64_t first_row = batch.query_starts[s];
    const int64_t new_tokens = batch.query_length(s);
    uint32_t hash = kStart;
    for (int64_t p = 0; p < batch.context_lengths[s]; ++p) {
      const int64_t slot = batch.block_tables[s][p / block_size] * block_size + p % block_size;
      hash = extend(hash, static_cast<int64_t>(keys[slot * stride]));
      const int64_t row = first_row + p - (batch.context_lengths[s] - new_tokens);
      if (row < first_row) continue;
      // An odd position in the batch must show in the result as well.
      hidden.data_ptr<int64_t>()[row] = batch.positions[row] == p ? hash : -1;
      if (p + 1 == poisoned_sequence) hidden.data_ptr<int64_t>()[row] = -2;
    }
  }
  if (residual_observer()) show_streams(hidden);
  return hidden;
}

/// As two layers would show them, the poison coming in with the last one's MLP.
void FakeModel::show_streams(const at::Tensor& hidden) const {
  at::Tensor stream = at::zeros({hidden.size(0), 3}, at::kFloat);
  residual_observer()(ResidualPoint::embedding, 0, stream);
  residual_observer()(ResidualPoint::attention, 0, stream);
  for (int64_t row = 0; row < hidden.size(0); ++row) {
    if (hidden.const_data_ptr<int64_t>()[row] == -2)
      stream.data_ptr<float>()[3 * row + 1] = std::numeric_limits<float>::infinity();
  }
  residual_observer()(ResidualPoint::mlp, 1, stream);
}

at::Tensor FakeModel::compute_logits(const at::Tensor& hidden) {
  calls.back().logit_rows = hidden.size(0);
  at::Tensor logits = at::empty({hidden.size(0), kFakeVocab}, at::kFloat);
  for (int64_t row = 0; row < hidden.size(0); ++row) {
    const int64_t hash = hidden.const_data_ptr<int64_t>()[row];
    for (int64_t token = 0; token < kFakeVocab; ++token) {
      const float value =
          hash >= 0 ? logit(static_cast<uint32_t>(hash), token) : std::numeric_limits<float>::quiet_NaN();
      logits.data_ptr<float>()[row * kFakeVocab + token] = value;
    }
  }
  return logits;
}

}  // namespace headway::testing
