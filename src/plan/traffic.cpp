#include "headway/plan/traffic.h"

#include <algorithm>

namespace headway {
namespace {

/// Sequences are spread over replicas as evenly as they go.
int64_t share(int64_t sequences, int64_t replicas, int64_t replica) {
  return (replica + 1) * sequences / replicas - replica * sequences / replicas;
}

/// Collects one rank's uses, leaving out groups of one.
class Uses {
 public:
  explicit Uses(const Plan& plan) : plan_(plan) {}

  void add(Collective kind, GroupKind group, std::string_view purpose, int64_t calls, int64_t bytes_per_call) {
    const int size = size_of(group);
    if (size > 1) uses_.push_back({kind, group, size, purpose, calls, calls * bytes_per_call});
  }

  std::vector<CollectiveUse> take() { return std::move(uses_); }

 private:
  int size_of(GroupKind group) const {
    switch (group) {
      case GroupKind::world:
        return static_cast<int>(plan_.parallel.world);
      case GroupKind::tp:
        return static_cast<int>(plan_.parallel.tp);
      case GroupKind::lm_head_tp:
        return static_cast<int>(plan_.parallel.attn_tp);
      case GroupKind::attn_dp:
        return plan_.replicas();
    }
    return 1;
  }

  const Plan& plan_;
  std::vector<CollectiveUse> uses_;
};

/// The sizes in bytes that every flow is made of.
struct Sizes {
  int64_t layers;
  int64_t all_tokens;    ///< [tokens, hidden]
  int64_t local_tokens;  ///< [tokens of the replica, hidden]
  int64_t rows;          ///< sequences that want logits
  int64_t local_rows;    ///< those of the replica
  int64_t row;           ///< [hidden]
  int64_t logits_row;    ///< [own vocabulary rows]
};

Sizes sizes_of(const Plan& plan, const RankPlan& rank, const Step& step) {
  const int64_t element = size_of(plan.dtype);
  const int64_t row = plan.model.hidden_size * element;
  const int64_t local = local_sequences(plan, rank.replica, step);
  return {plan.model.num_layers,
          step.tokens() * row,
          local * step.tokens_per_sequence * row,
          step.samples ? step.sequences : 0,
          step.samples ? local : 0,
          row,
          rank.lm_head_rows.size() * element};
}

/// The logits of all rows, on every rank: rank 0 chooses the tokens, which travel in the next step's message.
void add_logits(Uses& uses, const Plan& plan, const Sizes& sizes) {
  // A tied LM head works on the embedding's group, which may go by another name than its own.
  const ParallelConfig& parallel = plan.parallel;
  const VocabGroup group = plan.shares_vocabulary_table() ? parallel.embedding_group : parallel.lm_head_group;
  if (group == VocabGroup::none) return;
  uses.add(Collective::all_gather, group == VocabGroup::tp ? GroupKind::tp : GroupKind::lm_head_tp, "LM head", 1,
           sizes.rows * sizes.logits_row);
}

void add_replicated_flow(Uses& uses, const Plan& plan, const Sizes& sizes) {
  const auto add_on = [&](VocabGroup group, Collective kind, std::string_view purpose, int64_t bytes) {
    if (group == VocabGroup::none) return;
    uses.add(kind, group == VocabGroup::tp ? GroupKind::tp : GroupKind::lm_head_tp, purpose, 1, bytes);
  };
  add_on(plan.parallel.embedding_group, Collective::all_reduce, "embedding", sizes.all_tokens);
  uses.add(Collective::all_reduce, GroupKind::lm_head_tp, "o_proj", sizes.layers, sizes.all_tokens);
  uses.add(Collective::all_reduce, GroupKind::tp, "down_proj", sizes.layers, sizes.all_tokens);
  if (sizes.rows > 0) add_logits(uses, plan, sizes);
}

/// A sum over tp of which each replica keeps its own tokens.
void add_reduction_to_replicas(Uses& uses, std::string_view purpose, int64_t calls, const Sizes& sizes) {
  uses.add(Collective::reduce_scatter, GroupKind::attn_dp, purpose, calls, sizes.all_tokens);
  uses.add(Collective::all_reduce, GroupKind::lm_head_tp, purpose, calls, sizes.local_tokens);
}

void add_flow_of_replicas(Uses& uses, const Plan& plan, const Sizes& sizes) {
  switch (plan.parallel.embedding_group) {
    case VocabGroup::tp:
      add_reduction_to_replicas(uses, "embedding", 1, sizes);
      break;
    case VocabGroup::lm_head_tp:
      uses.add(Collective::all_reduce, GroupKind::lm_head_tp, "embedding", 1, sizes.local_tokens);
      break;
    case VocabGroup::none:
      break;
  }
  uses.add(Collective::all_reduce, GroupKind::lm_head_tp, "o_proj", sizes.layers, sizes.local_tokens);
  uses.add(Collective::all_gather, GroupKind::attn_dp, "MLP input", sizes.layers, sizes.local_tokens);
  add_reduction_to_replicas(uses, "down_proj", sizes.layers, sizes);
  if (sizes.rows == 0) return;
  uses.add(Collective::all_gather, GroupKind::attn_dp, "LM head", 1, sizes.local_rows * sizes.row);
  add_logits(uses, plan, sizes);
}

}  // namespace

int64_t local_sequences(const Plan& plan, int replica, const Step& step) {
  return plan.replicas_own_sequences() ? share(step.sequences, plan.replicas(), replica) : step.sequences;
}

int64_t lm_head_input_rows(const Step& step) {
  return step.samples ? step.sequences : 0;
}

std::vector<CollectiveUse> collectives_of(const Plan& plan, const RankPlan& rank, const Step& step) {
  Uses uses(plan);
  const Sizes sizes = sizes_of(plan, rank, step);
  if (plan.replicas_own_sequences()) {
    add_flow_of_replicas(uses, plan, sizes);
  } else {
    add_replicated_flow(uses, plan, sizes);
  }
  return uses.take();
}

}  // namespace headway
