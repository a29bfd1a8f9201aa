#include "kernels/cpu/attention_plan.h"

#include <algorithm>

namespace headway::kernels::cpu {
namespace {

void plan_decode(AttentionPlan& plan, const AttentionBatch& batch, int64_t sequence, const HeadRun& run,
                 int64_t window) {
  const int64_t context = batch.context_lengths[sequence];
  const int64_t token = batch.query_starts[sequence];
  AttentionMerge merge = {.run = &run, .token = token, .partial_row = plan.partial_rows};
  int64_t begin = std::max<int64_t>(0, context - window);
  while (begin < context) {
    const int64_t end = std::min(context, (begin / split_positions + 1) * split_positions);
    plan.pieces.push_back({.sequence = sequence,
                           .run = &run,
                           .tokens = {token, token + 1},
                           .positions = {begin, end},
                           .partial_row = plan.partial_rows});
    plan.partial_rows += run.q_heads.size();
    plan.positions += end - begin;
    ++merge.splits;
    begin = end;
  }
  plan.merges.push_back(merge);
}

void plan_prefill(AttentionPlan& plan, const AttentionBatch& batch, int64_t sequence, const HeadRun& run) {
  const int64_t tokens = std::max<int64_t>(1, prefill_rows / run.q_heads.size());
  const int64_t end = batch.query_starts[sequence + 1];
  for (int64_t token = batch.query_starts[sequence]; token < end; token += tokens) {
    const Range block = {token, std::min(end, token + tokens)};
    plan.pieces.push_back({.sequence = sequence, .run = &run, .tokens = block});
    plan.positions += batch.context_lengths[sequence];
  }
}

}  // namespace

AttentionPlan plan_attention(const AttentionBatch& batch, const std::vector<HeadRun>& runs, int64_t window) {
  AttentionPlan plan;
  for (int64_t sequence = 0; sequence < batch.num_sequences(); ++sequence) {
    for (const HeadRun& run : runs) {
      if (run.q_heads.empty()) continue;
      if (batch.query_length(sequence) == 1) {
        plan_decode(plan, batch, sequence, run, window);
      } else {
        plan_prefill(plan, batch, sequence, run);
      }
    }
  }
  return plan;
}

}  // namespace headway::kernels::cpu
