#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace headway {

/// How the tokens of one forward lie in sequences and in the paged KV cache. The tokens of sequence s are rows
/// [query_starts[s], query_starts[s+1]) of every per-token tensor; they are the last ones of its context.
/// Index vectors live on the host; `on_device` tensors mirror them where the kernels of a device need that.
struct AttentionBatch {
  std::vector<int64_t> positions;                  ///< [tokens] position of each token in its sequence
  std::vector<int64_t> slots;                      ///< [tokens] block * block_size + offset, where its K and V go
  std::vector<int64_t> query_starts;               ///< [sequences + 1]
  std::vector<int64_t> context_lengths;            ///< [sequences] tokens in all, the new ones included
  std::vector<std::vector<int32_t>> block_tables;  ///< [sequences] KV blocks in order
  /// [replicas] tokens of each attention replica, where they own different sequences; this batch is one replica's then.
  /// Empty where all replicas compute the same.
  std::vector<int64_t> replica_tokens;

  int64_t num_tokens() const { return static_cast<int64_t>(positions.size()); }
  int64_t num_sequences() const { return static_cast<int64_t>(context_lengths.size()); }
  int64_t query_length(int64_t sequence) const { return query_starts[sequence + 1] - query_starts[sequence]; }
};

/// One layer's paged cache: `keys` and `values` are [blocks, block_size, local_kv_heads, head_dim].
struct KVCacheView {
  at::Tensor keys;
  at::Tensor values;

  int64_t block_size() const { return keys.size(1); }
};

}  // namespace headway
