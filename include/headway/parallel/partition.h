#pragma once

#include <cstdint>
#include <vector>

#include "headway/base/range.h"
#include "headway/parallel/ranks.h"

namespace headway {

/// Head counts of a whole model.
struct HeadCounts {
  int64_t total_q_heads = 0;
  int64_t total_kv_heads = 0;
};

/// Consecutive local query heads that read one local KV head.
struct HeadRun {
  Range q_heads;        ///< local indices
  int64_t kv_head = 0;  ///< local index
  friend bool operator==(const HeadRun&, const HeadRun&) = default;
};

/// The attention heads that one rank of a group owns. Query heads are balanced to within one: rank r of S owns
/// [floor(r*Q/S), floor((r+1)*Q/S)). KV heads are those they read, shared whole between ranks where ranks outnumber
/// them. Where S divides K or K divides S this is what vLLM does.
///   28/4 heads on 8 ranks: query heads 3 4 3 4 3 4 3 4, one KV head each.
///   9/3 heads on 2 ranks:  query heads 4 5, KV heads 2 2.
struct HeadPartition {
  Range q_heads;   ///< [begin, end) of the total query heads
  Range kv_heads;  ///< [begin, end) of the total KV heads
  int64_t total_q_heads = 0;
  int64_t total_kv_heads = 0;

  /// Throws ConfigError if the query heads do not divide by the KV heads or a rank gets no head.
  static HeadPartition of(HeadCounts total, int group_size, GroupRank rank);

  int64_t local_q_heads() const { return q_heads.size(); }
  int64_t local_kv_heads() const { return kv_heads.size(); }
  int64_t local_kv_head(int64_t local_q_head) const;  ///< which local KV head a local query head reads
  std::vector<HeadRun> runs() const;                  ///< one per local KV head, in order
  bool holds_kv_copy(int64_t total_kv_head) const;    ///< whether this rank is not the first to hold that KV head
};

/// A contiguous cut of `total` rows or columns. Cuts fall on whole granules; the granule is the largest power of two
/// <= 64 that leaves no rank empty, else 1; the last granule may be short. With more ranks than rows some are empty.
///   4864 on 14: eight ranks of 320 and six of 384.
struct DimPartition {
  Range range;        ///< [begin, end) of this rank
  int64_t total = 0;  ///< rows or columns in all

  static DimPartition of(int64_t total, int group_size, GroupRank rank);

  int64_t size() const { return range.size(); }
};

/// The sizes of every rank's cut of `total`, in group order.
std::vector<int64_t> dim_partition_sizes(int64_t total, int group_size);

}  // namespace headway
