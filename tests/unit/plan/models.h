#pragma once

#include "headway/config/model_config.h"
#include "headway/plan/plan.h"

namespace headway {

/// A Qwen2 shape of 3 layers whose sizes are all distinct: 9 query and 3 KV heads of 8, MLP 200, vocabulary 321.
inline ModelConfig small_model() {
  ModelConfig model;
  model.architecture = "Qwen2ForCausalLM";
  model.hidden_size = 72;
  model.intermediate_size = 200;
  model.num_layers = 3;
  model.total_q_heads = 9;
  model.total_kv_heads = 3;
  model.head_dim = 8;
  model.vocab_size = 321;
  model.max_position_embeddings = 512;
  model.dtype = DType::BF16;
  return model;
}

inline ModelConfig model_with_heads(int64_t q_heads, int64_t kv_heads) {
  ModelConfig model = small_model();
  model.total_q_heads = q_heads;
  model.total_kv_heads = kv_heads;
  model.hidden_size = q_heads * model.head_dim;
  return model;
}

/// Qwen2-7B's published shape.
inline ModelConfig qwen2_7b() {
  ModelConfig model = small_model();
  model.hidden_size = 3584;
  model.intermediate_size = 18944;
  model.num_layers = 28;
  model.total_q_heads = 28;
  model.total_kv_heads = 4;
  model.head_dim = 128;
  model.vocab_size = 152064;
  model.max_position_embeddings = 32768;
  return model;
}

inline ParallelConfig layout_of(int64_t tp, int64_t attn_tp, VocabGroup embedding = VocabGroup::tp,
                                VocabGroup lm_head = VocabGroup::tp, AttnReplicas mode = AttnReplicas::replicate) {
  return {tp, tp, attn_tp, embedding, lm_head, mode};
}

inline Plan plan_of(const ModelConfig& model, const ParallelConfig& parallel) {
  return make_plan(model, parallel, DType::BF16);
}

}  // namespace headway
