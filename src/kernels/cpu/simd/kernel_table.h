#pragma once

#include <cstdint>

// The kernels that exist once per instruction set. Pointers are untyped because one table serves three element types;
// the drivers in cpu/*.cpp know which.
namespace headway::kernels::simd {

/// Most tokens of a LinearCall.
inline constexpr int64_t most_linear_tokens = 64;

/// y = x W^T (+ bias) for a few tokens.
struct LinearCall {
  const void* weight;  ///< [out, in], dense, of the table's element type or int8
  int64_t in;
  const void* packed;  ///< the inputs, from `pack_inputs`
  int64_t tokens;
  const float* scales;  ///< [out] factors of the rows, or null
  const void* bias;     ///< [out] or null
  void* output;         ///< tokens rows of the table's element type
  int64_t output_stride;
  bool prefetch;  ///< ask for weights ahead even with few tokens
};

/// One sequence's K and V rows in the paged cache.
struct CachedContext {
  const void* keys;  ///< slot 0 of the cache
  const void* values;
  const int32_t* blocks;
  int64_t block_size;
  int64_t slot_stride;  ///< elements from a slot to the next one
  int64_t head_dim;
};

/// The query heads of one token that read one KV head, and where their partial results go.
struct DecodeRun {
  int64_t offset;        ///< elements from a slot's beginning to the KV head's row
  const void* packed_q;  ///< its heads, from `pack_heads`
  int64_t heads;
  float* largest;   ///< [heads] largest score
  float* sum;       ///< [heads] sum of exp(score - largest)
  float* weighted;  ///< [heads, padded(head_dim)] sum of exp(score - largest) * value
};

/// One new token of a sequence against positions [begin, end) of its context.
struct DecodeCall {
  CachedContext cache;
  const DecodeRun* runs;
  int64_t run_count;
  float scale;
  int64_t begin;
  int64_t end;
  bool begins_cached;      ///< the call before has asked for the first rows
  const DecodeCall* next;  ///< what the same thread does next, or null: its first rows are asked for at the end
};

/// The partial results of one head over the splits of a context: rows `row_stride` apart.
struct MergeCall {
  float* largest;  ///< overwritten
  const float* sum;
  const float* weighted;  ///< rows of padded(head_dim)
  int64_t splits;
  int64_t row_stride;
  int64_t head_dim;
  void* output;  ///< [head_dim]
};

/// New tokens of a sequence against all that each may see, for the query heads of one KV head.
struct PrefillCall {
  CachedContext cache;
  int64_t offset;  ///< elements from a slot's beginning to the KV head's row
  const void* q;   ///< element [token, head, d] at token * q_token_stride + head * q_head_stride + d
  int64_t q_token_stride;
  int64_t q_head_stride;
  void* output;  ///< [token, head, d] with strides of its own
  int64_t output_token_stride;
  int64_t output_head_stride;
  int64_t tokens;
  int64_t heads;
  int64_t first_position;  ///< of the first token
  int64_t window;          ///< positions that a token sees, itself included
  float scale;
  float* scratch;  ///< prefill_scratch_floats(tokens * heads, head_dim), 64-byte aligned
};

/// The kernels of one element type under one instruction set.
struct KernelTable {
  /// Packs `tokens` inputs of `in` elements, `stride` elements apart, as `linear` wants them.
  void (*pack_inputs)(const void* x, int64_t stride, int64_t tokens, int64_t in, void* packed);
  void (*linear)(const LinearCall& call, int64_t out_begin, int64_t out_end);
  /// The same two for weights of int8.
  void (*pack_int8_inputs)(const void* x, int64_t stride, int64_t tokens, int64_t in, void* packed);
  void (*int8_linear)(const LinearCall& call, int64_t out_begin, int64_t out_end);
  /// A row of n int8 values times `scale`.
  void (*scale_int8_row)(const void* row, float scale, void* output, int64_t n);
  /// y = x * rsqrt(mean(x^2) + eps) * weight; with a residual, first residual += x and then of the residual.
  void (*rms_norm)(const void* x, void* residual, const void* weight, void* y, int64_t n, float eps);
  void (*silu_and_mul)(const void* gate, const void* up, void* y, int64_t n);
  void (*rotate_head)(void* head, const float* cos, const float* sin, int64_t half);
  /// Packs `heads` queries as `attend_decode` wants them.
  void (*pack_heads)(const void* q, int64_t stride, int64_t heads, int64_t head_dim, void* packed);
  void (*attend_decode)(const DecodeCall& call);
  void (*merge_splits)(const MergeCall& call);
  void (*attend_prefill)(const PrefillCall& call);
};

/// The three element types of one instruction set.
struct KernelSet {
  KernelTable fp32;
  KernelTable bf16;
  KernelTable fp16;
};

extern const KernelSet portable_kernels;
extern const KernelSet avx2_kernels;  // these three on x86-64 only
extern const KernelSet avx512_kernels;
extern const KernelSet avx512_bf16_kernels;

/// Floats rounded up to whole vectors of every instruction set.
constexpr int64_t padded(int64_t floats) {
  return (floats + 15) / 16 * 16;
}

/// Floats of room for `count` packed inputs of n elements, under every instruction set.
constexpr int64_t packed_floats(int64_t count, int64_t n) {
  return count * ((n + 31) / 32 * 32);
}

/// Positions that prefill attention takes at once, and those that decode attention does: its next tile is on the way
/// to the first-level cache while this one is there.
inline constexpr int64_t attention_tile = 64;
inline constexpr int64_t decode_tile = 32;

/// Rows of queries and of weighted sums, largest score and sum of each row, and a tile of keys and one of values.
constexpr int64_t prefill_scratch_floats(int64_t rows, int64_t head_dim) {
  return padded(rows + 16) * (2 * padded(head_dim) + 2) + 2 * attention_tile * padded(head_dim);
}

}  // namespace headway::kernels::simd
