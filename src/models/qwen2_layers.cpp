#include <cmath>

#include "headway/models/qwen2.h"
#include "kernels/ops.h"

namespace headway {
namespace {

QKVShape qkv_shape(const ModelConfig& config) {
  return {config.hidden_size, config.head_dim, {config.total_q_heads, config.total_kv_heads}};
}

RowShape o_proj_shape(const ModelConfig& config) {
  return {config.total_q_heads * config.head_dim, config.hidden_size, config.total_q_heads};
}

}  // namespace

Qwen2Attention::Qwen2Attention(const ModelConfig& config, int64_t layer, const ParallelState& state)
    : head_dim_(config.head_dim),
      heads_(HeadPartition::of({config.total_q_heads, config.total_kv_heads}, state.lm_head_tp().size(),
                               state.lm_head_tp().rank())),
      runs_(heads_.runs()),
      scale_(1.0 / std::sqrt(static_cast<double>(config.head_dim))),
      sliding_window_(config.sliding_window.at(layer)) {
  child<AttnQKVParallelLinear>("qkv_proj", qkv_proj_, state, qkv_shape(config), ColumnOptions{.bias = true});
  child<AttnRowParallelLinear>("o_proj", o_proj_, state, o_proj_shape(config), RowOptions{.bias = false});
}

at::Tensor Qwen2Attention::forward(const at::Tensor& hidden, const RotaryAngles& angles, const AttentionBatch& batch,
                                   KVCacheView& cache) const {
  if (batch.num_tokens() == 0) return hidden;  // a replica without sequences in this step
  const int64_t q_heads = heads_.local_q_heads();
  const int64_t kv_heads = heads_.local_kv_heads();
  const at::Tensor qkv = qkv_proj_->forward(hidden).output.view({hidden.size(0), q_heads + 2 * kv_heads, head_dim_});
  const at::Tensor q = qkv.narrow(1, 0, q_heads);
  const at::Tensor k = qkv.narrow(1, q_heads, kv_heads);
  const at::Tensor v = qkv.narrow(1, q_heads + kv_heads, kv_heads);
  RotaryEmbedding::rotate(qkv.narrow(1, 0, q_heads + kv_heads), angles);  // q and k in one pass
  kernels::write_kv_cache(k, v, cache, batch);
  const at::Tensor context = kernels::paged_attention(q, cache, batch, runs_, {scale_, sliding_window_});
  return o_proj_->forward(context.view({hidden.size(0), q_heads * head_dim_}));
}

Qwen2MLP::Qwen2MLP(const ModelConfig& config, const ParallelState& state, bool replicas_own_sequences) {
  if (replicas_own_sequences) exchange_.emplace(state);
  const std::vector<MergedColumnParallelLinear::Output> outputs{{"gate", config.intermediate_size},
                                                                {"up", config.intermediate_size}};
  child<MergedColumnParallelLinear>("gate_up_proj", gate_up_proj_, state.tp(), config.hidden_size, outputs,
                                    ColumnOptions{.bias = false});
  child<RowParallelLinear>("down_proj", down_proj_, state.tp(), RowShape{config.intermediate_size, config.hidden_size},
                           RowOptions{.bias = false, .reduce_results = !replicas_own_sequences});
}

at::Tensor Qwen2MLP::forward(const at::Tensor& hidden, const std::vector<int64_t>& replica_tokens) const {
  if (!exchange_) return project(hidden);
  return exchange_->sum_to_own(project(exchange_->gather(hidden, replica_tokens)), replica_tokens);
}

at::Tensor Qwen2MLP::project(const at::Tensor& hidden) const {
  return down_proj_->forward(kernels::silu_and_mul(gate_up_proj_->forward(hidden)));
}

Qwen2DecoderLayer::Qwen2DecoderLayer(const ModelConfig& config, int64_t layer, const ParallelState& state,
                                     bool replicas_own_sequences) {
  child<RMSNorm>("input_layernorm", input_layernorm_, config.hidden_size, config.rms_norm_eps);
  child<Qwen2Attention>("self_attn", self_attn_, config, layer, state);
  child<RMSNorm>("post_attention_layernorm", post_attention_layernorm_, config.hidden_size, config.rms_norm_eps);
  child<Qwen2MLP>("mlp", mlp_, config, state, replicas_own_sequences);
}

at::Tensor Qwen2DecoderLayer::forward(const at::Tensor& hidden, at::Tensor& residual, const RotaryAngles& angles,
                                      const AttentionBatch& batch, KVCacheView& cache) const {
  const at::Tensor normed = input_layernorm_->forward(hidden, residual);
  const at::Tensor attended = self_attn_->forward(normed, angles, batch, cache);
  return mlp_->forward(post_attention_layernorm_->forward(attended, residual), batch.replica_tokens);
}

}  // namespace headway
