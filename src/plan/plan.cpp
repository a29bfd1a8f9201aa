#include "headway/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "headway/base/error.h"

namespace headway {
namespace {

constexpr std::string_view kQwen2 = "Qwen2ForCausalLM";

void check_plannable(const ModelConfig& model, const ParallelConfig& parallel) {
  if (model.architecture != kQwen2) {
    throw ConfigError(fmt::format("plan: the parameters of architecture \"{}\" are not known; known: {}",
                                  model.architecture, kQwen2));
  }
  if (parallel.attn_replicas == AttnReplicas::cp) {
    throw ConfigError("plan: attention replicas in mode cp cannot be planned yet; legal: replicate, dp");
  }
}

/// The parameters of a Qwen2 rank: biases on q, k and v only, norms everywhere.
ParameterBytes qwen2_parameters(const Plan& plan, const RankPlan& rank) {
  const ModelConfig& model = plan.model;
  const int64_t element = size_of(plan.dtype);
  const int64_t layers = model.num_layers;
  const int64_t hidden = model.hidden_size;
  const int64_t q_rows = rank.heads.local_q_heads() * model.head_dim;
  const int64_t kv_rows = rank.heads.local_kv_heads() * model.head_dim;

  ParameterBytes bytes;
  bytes.embedding = rank.embedding_rows.size() * hidden * element;
  bytes.qkv_proj = layers * (q_rows + 2 * kv_rows) * (hidden + 1) * element;
  bytes.o_proj = layers * hidden * q_rows * element;
  bytes.mlp = layers * 3 * rank.mlp_columns.size() * hidden * element;
  bytes.norms = (2 * layers + 1) * hidden * element;
  bytes.lm_head = plan.shares_vocabulary_table() ? 0 : rank.lm_head_rows.size() * hidden * element;
  return bytes;
}

RankPlan plan_rank(const Plan& plan, GlobalRank rank) {
  const ModelConfig& model = plan.model;
  const int tp = static_cast<int>(plan.parallel.tp);
  const int attn_tp = static_cast<int>(plan.parallel.attn_tp);
  const int tp_rank = rank.value % tp;
  const auto vocabulary_rows = [&](VocabGroup group) {
    const int size = plan.vocab_group_size(group);
    return DimPartition::of(model.vocab_size, size, {tp_rank % size}).range;
  };

  RankPlan result;
  result.rank = rank;
  result.replica = tp_rank / attn_tp;
  result.heads = HeadPartition::of({model.total_q_heads, model.total_kv_heads}, attn_tp, {tp_rank % attn_tp});
  result.mlp_columns = DimPartition::of(model.intermediate_size, tp, {tp_rank}).range;
  result.embedding_rows = vocabulary_rows(plan.parallel.embedding_group);
  result.lm_head_rows = vocabulary_rows(plan.parallel.lm_head_group);
  result.parameters = qwen2_parameters(plan, result);
  result.kv_bytes_per_token =
      model.num_layers * 2 * result.heads.local_kv_heads() * model.head_dim * size_of(plan.dtype);
  return result;
}

}  // namespace

RankLayout Plan::layout() const {
  return RankLayout(static_cast<int>(parallel.world), static_cast<int>(parallel.tp),
                    static_cast<int>(parallel.attn_tp));
}

int Plan::replicas() const {
  return static_cast<int>(parallel.tp / parallel.attn_tp);
}

int Plan::vocab_group_size(VocabGroup group) const {
  switch (group) {
    case VocabGroup::tp:
      return static_cast<int>(parallel.tp);
    case VocabGroup::lm_head_tp:
      return static_cast<int>(parallel.attn_tp);
    case VocabGroup::none:
      return 1;
  }
  return 1;
}

bool Plan::shares_vocabulary_table() const {
  // Groups of equal size around a rank are the same group: all are runs of consecutive ranks.
  return model.tie_word_embeddings &&
         vocab_group_size(parallel.embedding_group) == vocab_group_size(parallel.lm_head_group);
}

bool Plan::replicas_own_sequences() const {
  return parallel.attn_replicas == AttnReplicas::dp && replicas() > 1;
}

Plan make_plan(const ModelConfig& model, const ParallelConfig& parallel, DType dtype) {
  check_plannable(model, parallel);
  Plan plan{model, parallel, dtype, {}};
  const RankLayout layout = plan.layout();  // refuses sizes that do not divide
  for (int rank = 0; rank < layout.world_size(); ++rank) plan.ranks.push_back(plan_rank(plan, {rank}));
  return plan;
}

DType planned_dtype(const ModelConfig& model, std::optional<DType> wanted) {
  return wanted.value_or(model.dtype.value_or(DType::F32));
}

int64_t kv_token_capacity(const RankPlan& rank, const RankMemory& memory) {
  const int64_t room = memory.bytes - memory.reserve - rank.parameters.total();
  return room <= 0 ? 0 : room / rank.kv_bytes_per_token;
}

int64_t kv_token_capacity(const Plan& plan, const RankMemory& memory) {
  // All ranks use the same number of blocks, so the fullest decides for every replica.
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (const RankPlan& rank : plan.ranks) smallest = std::min(smallest, kv_token_capacity(rank, memory));
  return plan.replicas_own_sequences() ? smallest * plan.replicas() : smallest;
}

bool parameters_fit(const Plan& plan, const RankMemory& memory) {
  return std::all_of(plan.ranks.begin(), plan.ranks.end(),
                     [&](const RankPlan& rank) { return rank.parameters.total() + memory.reserve <= memory.bytes; });
}

}  // namespace headway
