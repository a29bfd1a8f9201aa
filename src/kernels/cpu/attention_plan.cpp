#include "kernels/cpu/attention_plan.h"

#include <algorithm>

#include "kernels/cpu/simd/kernel_table.h"

namespace headway::kernels::cpu {
namespace {

/// Plans the sequences of one batch, one after the other.
class Planner {
 public:
  Planner(const AttentionBatch& batch, const std::vector<HeadRun>& runs, int64_t window, int64_t row_bytes)
      : batch_(batch),
        runs_(runs),
        window_(window),
        runs_per_piece_(std::max<int64_t>(1, decode_row_bytes / row_bytes)) {}

  AttentionPlan plan() {
    for (int64_t sequence = 0; sequence < batch_.num_sequences(); ++sequence) {
      if (batch_.query_length(sequence) == 1) {
        plan_decode(sequence);
      } else {
        plan_prefill(sequence);
      }
    }
    return std::move(plan_);
  }

 private:
  void plan_decode(int64_t sequence) {
    const int64_t run_count = static_cast<int64_t>(runs_.size());
    for (int64_t run = 0; run < run_count; run += runs_per_piece_) {
      plan_decode(sequence, {run, std::min(run_count, run + runs_per_piece_)});
    }
  }

  void plan_decode(int64_t sequence, Range runs) {
    const int64_t context = batch_.context_lengths[sequence];
    const int64_t token = batch_.query_starts[sequence];
    const Range q_heads = {runs_[runs.begin].q_heads.begin, runs_[runs.end - 1].q_heads.end};
    if (q_heads.empty()) return;
    AttentionMerge merge = {
        .q_heads = q_heads, .token = token, .partial_row = plan_.partial_rows, .split_rows = q_heads.size()};
    const int64_t split = split_positions(context);
    int64_t begin = std::max<int64_t>(0, context - window_);
    while (begin < context) {
      const int64_t end = std::min(context, (begin / split + 1) * split);
      plan_.pieces.push_back({.sequence = sequence,
                              .runs = runs,
                              .tokens = {token, token + 1},
                              .positions = {begin, end},
                              .partial_row = plan_.partial_rows,
                              .cost = (end - begin) * q_heads.size()});
      plan_.partial_rows += q_heads.size();
      plan_.cost += plan_.pieces.back().cost;
      ++merge.splits;
      begin = end;
    }
    plan_.merges.push_back(merge);
  }

  void plan_prefill(int64_t sequence) {
    const int64_t end = batch_.query_starts[sequence + 1];
    for (int64_t run = 0; run < static_cast<int64_t>(runs_.size()); ++run) {
      if (runs_[run].q_heads.empty()) continue;
      const int64_t tokens = std::max<int64_t>(1, prefill_rows / runs_[run].q_heads.size());
      for (int64_t token = batch_.query_starts[sequence]; token < end; token += tokens) {
        const Range block = {token, std::min(end, token + tokens)};
        const int64_t seen = batch_.context_lengths[sequence] - (end - block.end);
        plan_.pieces.push_back({.sequence = sequence,
                                .runs = {run, run + 1},
                                .tokens = block,
                                .cost = block.size() * runs_[run].q_heads.size() * seen});
        plan_.cost += plan_.pieces.back().cost;
      }
    }
  }

  const AttentionBatch& batch_;
  const std::vector<HeadRun>& runs_;
  const int64_t window_;
  const int64_t runs_per_piece_;
  AttentionPlan plan_;
};

}  // namespace

int64_t split_positions(int64_t context) {
  const int64_t eighth = (context / 8 + simd::decode_tile - 1) / simd::decode_tile * simd::decode_tile;
  return std::clamp<int64_t>(eighth, 128, 512);
}

std::vector<Range> AttentionPlan::shares(int64_t threads) const {
  const bool all_decode =
      std::all_of(pieces.begin(), pieces.end(), [](const auto& piece) { return piece.is_decode(); });
  const int64_t count = all_decode ? threads : 8 * threads;
  std::vector<Range> shares;
  int64_t begin = 0, spent = 0;
  const int64_t last = static_cast<int64_t>(pieces.size()) - 1;
  for (int64_t i = 0; i <= last; ++i) {
    spent += pieces[i].cost;
    const int64_t due = cost * (static_cast<int64_t>(shares.size()) + 1) / count;
    if (i < last && spent + pieces[i + 1].cost / 2 <= due) continue;
    shares.push_back({begin, i + 1});
    begin = i + 1;
  }
  return shares;
}

AttentionPlan plan_attention(const AttentionBatch& batch, const std::vector<HeadRun>& runs, int64_t window,
                             int64_t row_bytes) {
  return Planner(batch, runs, window, row_bytes).plan();
}

}  // namespace headway::kernels::cpu
