#pragma once

#include <vector>

#include "headway/base/range.h"
#include "headway/kernels/attention_batch.h"
#include "headway/parallel/partition.h"

namespace headway::kernels::cpu {

/// A piece of attention that one thread does:
///  - one new token of a sequence that has no others, against a split of its context, for the query heads of a few runs
///    whose K rows lie beside each other (decode), or
///  - a block of a sequence's new tokens, against all that they see, for the query heads of one run (prefill).
/// Pieces depend on the batch alone, not on the number of threads, so that results do not either.
struct AttentionPiece {
  int64_t sequence = 0;
  Range runs;
  Range tokens;             ///< rows of q
  Range positions = {};     ///< decode: of the context; empty for prefill
  int64_t partial_row = 0;  ///< decode: where the partial results of its heads go, one row for each
  int64_t cost = 0;         ///< q rows times positions

  bool is_decode() const { return !positions.empty(); }
};

/// The splits of one decoded token's context, whose partial results follow each other.
struct AttentionMerge {
  Range q_heads;
  int64_t token = 0;
  int64_t partial_row = 0;
  int64_t splits = 0;
  int64_t split_rows = 0;  ///< partial rows from a split to the next
};

struct AttentionPlan {
  std::vector<AttentionPiece> pieces;
  std::vector<AttentionMerge> merges;
  int64_t partial_rows = 0;
  int64_t cost = 0;  ///< of all pieces

  /// The pieces in runs of about equal cost, as many as there are threads; more where there is prefill, whose pieces
  /// are large and differ.
  std::vector<Range> shares(int64_t threads) const;
};

/// Positions of a split of a context: an eighth of it, between 128 and 512.
int64_t split_positions(int64_t context);

/// Bytes of K rows that a decode piece reads side by side, and rows (heads of tokens) of a
/// prefill piece.
inline constexpr int64_t decode_row_bytes = 256;
inline constexpr int64_t prefill_rows = 256;

/// `window`: positions that a token sees, itself included; `row_bytes`: of one K row of one head.
AttentionPlan plan_attention(const AttentionBatch& batch, const std::vector<HeadRun>& runs, int64_t window,
                             int64_t row_bytes);

}  // namespace headway::kernels::cpu
