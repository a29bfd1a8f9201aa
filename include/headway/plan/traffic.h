#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headway/parallel/collective.h"
#include "headway/parallel/rank_layout.h"
#include "headway/plan/plan.h"

namespace headway {

/// One forward pass. A decode step of n sequences is {n, 1, context}; a prompt of p tokens is {1, p, p / 2}.
struct Step {
  int64_t sequences = 1;
  int64_t tokens_per_sequence = 1;
  int64_t context = 0;  ///< cached tokens that a token attends to, on average
  bool samples = true;  ///< whether logits of each sequence's last token are wanted

  int64_t tokens() const { return sequences * tokens_per_sequence; }
};

/// Collectives of one kind that one rank takes part in during a step.
struct CollectiveUse {
  Collective kind = Collective::all_reduce;
  GroupKind group = GroupKind::tp;
  int group_size = 1;
  std::string_view purpose;  ///< "embedding", "o_proj", "MLP input", "down_proj", "LM head", "sampled ids"
  int64_t calls = 0;
  int64_t bytes = 0;  ///< that this rank hands in, over all calls: the size of the input tensors
};

/// The sequences of `step` that a replica computes: all, or its share if replicas own sequences.
int64_t local_sequences(const Plan& plan, int replica, const Step& step);

/// Rows of logits for which a rank multiplies its part of the LM head.
int64_t lm_head_input_rows(const Step& step);

/// What `rank` sends during `step`, in the order of the forward pass. Groups of one are left out. Every rank's list
/// has the same entries; the bytes may differ. The flow is, with h = hidden size and n = tokens:
///   replicate  embedding  all_reduce [n, h] on its group
///              o_proj     all_reduce [n, h] on lm_head_tp, per layer
///              down_proj  all_reduce [n, h] on tp, per layer
///              LM head    all_gather [rows, own vocabulary rows] on its group
///   dp         n_r = tokens of the replica; the MLP's input is gathered over attn_dp, its output reduce-scattered
///              over attn_dp and all-reduced over lm_head_tp; an embedding on tp is reduced alike; the LM head's
///              rows are gathered over attn_dp, and the logits as in replicate.
std::vector<CollectiveUse> collectives_of(const Plan& plan, const RankPlan& rank, const Step& step);

}  // namespace headway
