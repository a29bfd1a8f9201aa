#include "headway/models/qwen2.h"

#include <ATen/ops/add.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

namespace headway {
namespace {

const GroupCoordinator& vocab_group(VocabGroup group, const ParallelState& state) {
  switch (group) {
    case VocabGroup::tp:
      return state.tp();
    case VocabGroup::lm_head_tp:
      return state.lm_head_tp();
    case VocabGroup::none:
      return state.self();
  }
  throw ArgumentError("unknown vocabulary group");
}

HeadPartition attention_heads(const ModelConfig& config, const ParallelState& state) {
  return HeadPartition::of({config.total_q_heads, config.total_kv_heads}, state.lm_head_tp().size(),
                           state.lm_head_tp().rank());
}

}  // namespace

Qwen2Model::Qwen2Model(const ModelConfig& config, const GroupCoordinator& embedding_group, const ParallelState& state,
                       bool replicas_own_sequences)
    : cut_over_replicas_(embedding_group.size() > state.lm_head_tp().size()),
      rotary_(config.rope, config.head_dim),
      layers_(config.num_layers) {
  if (replicas_own_sequences) exchange_.emplace(state);
  child<VocabParallelEmbedding>("embed_tokens", embed_tokens_, embedding_group, config.vocab_size, config.hidden_size);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    child<Qwen2DecoderLayer>(fmt::format("layers.{}", i), layers_[i], config, i, state, replicas_own_sequences);
  }
  child<RMSNorm>("norm", norm_, config.hidden_size, config.rms_norm_eps);
}

at::Tensor Qwen2Model::embed(const at::Tensor& token_ids, const std::vector<int64_t>& replica_tokens) const {
  if (!exchange_) return embed_tokens_->forward(token_ids);
  const Range own = exchange_->own_rows(replica_tokens);
  // A replica has the whole table unless it is cut over all ranks.
  if (!cut_over_replicas_) return embed_tokens_->forward(token_ids.narrow(0, own.begin, own.size()));
  return exchange_->sum_to_own(embed_tokens_->contribution(token_ids), replica_tokens);
}

at::Tensor Qwen2Model::forward(const at::Tensor& token_ids, const AttentionBatch& batch,
                               std::vector<KVCacheView>& caches, const ResidualObserver& observer) {
  if (caches.size() != layers_.size()) {
    throw ArgumentError(fmt::format("{} KV caches for {} layers", caches.size(), layers_.size()));
  }
  const RotaryAngles angles = rotary_.angles(batch, token_ids.device());
  at::Tensor hidden = embed(token_ids, batch.replica_tokens);
  at::Tensor residual = at::zeros_like(hidden);
  if (observer) observer(ResidualPoint::embedding, 0, hidden);
  for (size_t i = 0; i < layers_.size(); ++i) {
    hidden = layers_[i]->forward(hidden, residual, angles, batch, caches[i]);
    if (!observer) continue;
    const auto layer = static_cast<int64_t>(i);
    observer(ResidualPoint::attention, layer, residual);  // the next norm adds the MLP's output
    observer(ResidualPoint::mlp, layer, residual.add(hidden));
  }
  return norm_->forward(hidden, residual);
}

Qwen2ForCausalLM::Qwen2ForCausalLM(const ModelConfig& config, const ParallelConfig& parallel,
                                   const ParallelState& state)
    : CausalLM(config, attention_heads(config, state),
               parallel.replicas_own_sequences() ? static_cast<int>(parallel.replicas()) : 1) {
  const GroupCoordinator& embedding_group = vocab_group(parallel.embedding_group, state);
  const GroupCoordinator& lm_head_group = vocab_group(parallel.lm_head_group, state);
  child<Qwen2Model>("model", model_, config, embedding_group, state, parallel.replicas_own_sequences());
  if (config.tie_word_embeddings && embedding_group.ranks() == lm_head_group.ranks()) {
    child<ParallelLMHead>("lm_head", lm_head_, model_->embed_tokens());
  } else {
    child<ParallelLMHead>("lm_head", lm_head_, lm_head_group, config.vocab_size, config.hidden_size);
  }
}

at::Tensor Qwen2ForCausalLM::forward(const at::Tensor& token_ids, const AttentionBatch& batch,
                                     std::vector<KVCacheView>& caches) {
  return model_->forward(token_ids, batch, caches, residual_observer());
}

at::Tensor Qwen2ForCausalLM::compute_logits(const at::Tensor& hidden) {
  return lm_head_->forward(hidden);
}

CheckpointNames Qwen2ForCausalLM::checkpoint_names() const {
  CheckpointNames names;
  names.sections = {{"qkv_proj", {{"q", "q_proj"}, {"k", "k_proj"}, {"v", "v_proj"}}},
                    {"gate_up_proj", {{"gate", "gate_proj"}, {"up", "up_proj"}}}};
  names.optional_prefix = "model.";
  if (config().tie_word_embeddings) {
    names.aliases = {{"lm_head.weight", "model.embed_tokens.weight"}};
    names.ignorable = {"lm_head.weight"};
  } else {
    names.hints = {{"lm_head.weight", "tie_word_embeddings=false"}};
  }
  return names;
}

}  // namespace headway
