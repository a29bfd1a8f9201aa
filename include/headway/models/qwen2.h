#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "headway/layers/attn_linear.h"
#include "headway/layers/linear.h"
#include "headway/layers/replica_exchange.h"
#include "headway/layers/rms_norm.h"
#include "headway/layers/rotary_embedding.h"
#include "headway/layers/vocab_parallel_embedding.h"
#include "headway/models/causal_lm.h"

// Qwen2 and Qwen2.5 (https://arxiv.org/abs/2407.10671): pre-norm blocks of grouped-query attention with biases on q, k
// and v, and of a SiLU-gated MLP. Attention is sharded over `lm_head_tp`, the MLP over `tp`. Where attention replicas
// own sequences, the residual stream of a rank has its replica's tokens only; all ranks' tokens meet in the MLP.
namespace headway {

/// One attention block. The input and output are [tokens, hidden], the same on every rank of the attention group.
class Qwen2Attention : public Module {
 public:
  Qwen2Attention(const ModelConfig& config, int64_t layer, const ParallelState& state);

  /// Extends `cache` by the batch's keys and values and attends over it.
  at::Tensor forward(const at::Tensor& hidden, const RotaryAngles& angles, const AttentionBatch& batch,
                     KVCacheView& cache) const;

  const HeadPartition& heads() const { return heads_; }

 private:
  int64_t head_dim_;
  HeadPartition heads_;
  std::vector<HeadRun> runs_;
  double scale_;
  std::optional<int64_t> sliding_window_;
  std::shared_ptr<Linear> qkv_proj_;
  std::shared_ptr<Linear> o_proj_;
};

/// down(silu(gate(x)) * up(x)); the intermediate columns may be uneven or empty on a rank.
class Qwen2MLP : public Module {
 public:
  Qwen2MLP(const ModelConfig& config, const ParallelState& state, bool replicas_own_sequences);

  /// `replica_tokens` as in AttentionBatch.
  at::Tensor forward(const at::Tensor& hidden, const std::vector<int64_t>& replica_tokens) const;

 private:
  at::Tensor project(const at::Tensor& hidden) const;

  std::optional<ReplicaExchange> exchange_;  ///< where replicas own sequences
  std::shared_ptr<Linear> gate_up_proj_;
  std::shared_ptr<Linear> down_proj_;
};

/// One block: norm, attention, norm, MLP, with the residual stream beside them.
class Qwen2DecoderLayer : public Module {
 public:
  Qwen2DecoderLayer(const ModelConfig& config, int64_t layer, const ParallelState& state, bool replicas_own_sequences);

  /// Returns the MLP's output; the block's sum is residual + output, added by the next norm.
  at::Tensor forward(const at::Tensor& hidden, at::Tensor& residual, const RotaryAngles& angles,
                     const AttentionBatch& batch, KVCacheView& cache) const;

 private:
  std::shared_ptr<RMSNorm> input_layernorm_;
  std::shared_ptr<Qwen2Attention> self_attn_;
  std::shared_ptr<RMSNorm> post_attention_layernorm_;
  std::shared_ptr<Qwen2MLP> mlp_;
};

/// Embedding, blocks and final norm.
class Qwen2Model : public Module {
 public:
  Qwen2Model(const ModelConfig& config, const GroupCoordinator& embedding_group, const ParallelState& state,
             bool replicas_own_sequences);

  at::Tensor forward(const at::Tensor& token_ids, const AttentionBatch& batch, std::vector<KVCacheView>& caches,
                     const ResidualObserver& observer = {});

  const VocabParallelEmbedding& embed_tokens() const { return *embed_tokens_; }

 private:
  at::Tensor embed(const at::Tensor& token_ids, const std::vector<int64_t>& replica_tokens) const;

  std::optional<ReplicaExchange> exchange_;  ///< where replicas own sequences
  bool cut_over_replicas_;                   ///< whether no replica has the whole embedding table
  RotaryEmbedding rotary_;
  std::shared_ptr<VocabParallelEmbedding> embed_tokens_;
  std::vector<std::shared_ptr<Qwen2DecoderLayer>> layers_;
  std::shared_ptr<RMSNorm> norm_;
};

/// Qwen2 and Qwen2.5 as Hugging Face names them: decoder blocks and an LM head, which may share the embedding's weight.
class Qwen2ForCausalLM : public CausalLM {
 public:
  Qwen2ForCausalLM(const ModelConfig& config, const ParallelConfig& parallel, const ParallelState& state);

  at::Tensor forward(const at::Tensor& token_ids, const AttentionBatch& batch,
                     std::vector<KVCacheView>& caches) override;
  at::Tensor compute_logits(const at::Tensor& hidden) override;
  CheckpointNames checkpoint_names() const override;

 private:
  std::shared_ptr<Qwen2Model> model_;
  std::shared_ptr<ParallelLMHead> lm_head_;
};

}  // namespace headway
