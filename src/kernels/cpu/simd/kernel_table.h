#pragma once

#include <cstdint>

// The kernels that exist once per instruction set. Pointers are untyped because one table serves three element types;
// the drivers in cpu/*.cpp know which.
namespace headway::kernels::simd {

/// y = x W^T (+ bias) for a few tokens.
struct LinearCall {
  const void* weight;  ///< [out, in], dense
  int64_t in;
  const void* inputs;  ///< tokens rows of `in` elements: fp32, or the weight's type if `linear_takes_elements`
  int64_t input_stride;
  int64_t tokens;
  const void* bias;  ///< [out] or null
  void* output;      ///< tokens rows of the weight's type
  int64_t output_stride;
};

/// The K and V rows of one KV head of one sequence in the paged cache.
struct CachedHead {
  const void* keys;  ///< the head's row of slot 0
  const void* values;
  const int32_t* blocks;
  int64_t block_size;
  int64_t slot_stride;  ///< elements from a slot's row to the next slot's
  int64_t head_dim;
};

/// One new token of a sequence against positions [begin, end) of its context, for the query heads of one KV head.
struct DecodeCall {
  CachedHead cache;
  const void* q;  ///< `heads` rows: fp32, or the cache's type if `linear_takes_elements`
  int64_t q_stride;
  int64_t heads;
  float scale;
  int64_t begin;
  int64_t end;
  float* largest;   ///< [heads] largest score
  float* sum;       ///< [heads] sum of exp(score - largest)
  float* weighted;  ///< [heads, padded(head_dim)] sum of exp(score - largest) * value
};

/// The partial results of one head over the splits of a context: rows `row_stride` apart.
struct MergeCall {
  const float* largest;
  const float* sum;
  const float* weighted;  ///< rows of padded(head_dim)
  int64_t splits;
  int64_t row_stride;
  int64_t head_dim;
  void* output;  ///< [head_dim]
};

/// New tokens of a sequence against all that each may see, for the query heads of one KV head.
struct PrefillCall {
  CachedHead cache;
  const void* q;  ///< element [token, head, d] at token * q_token_stride + head * q_head_stride + d
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
  bool linear_takes_elements;  ///< dot products read inputs of the element type, not fp32
  void (*linear)(const LinearCall& call, int64_t out_begin, int64_t out_end);
  void (*to_float)(const void* from, float* to, int64_t n);
  /// y = x * rsqrt(mean(x^2) + eps) * weight; with a residual, first residual += x and then of the residual.
  void (*rms_norm)(const void* x, void* residual, const void* weight, void* y, int64_t n, float eps);
  void (*silu_and_mul)(const void* gate, const void* up, void* y, int64_t n);
  void (*rotate_head)(void* head, const float* cos, const float* sin, int64_t half);
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

/// Positions that attention takes at once.
inline constexpr int64_t attention_tile = 64;

/// Rows of queries and of weighted sums, largest score and sum of each row, and a tile of keys and one of values.
constexpr int64_t prefill_scratch_floats(int64_t rows, int64_t head_dim) {
  return padded(rows + 16) * (2 * padded(head_dim) + 2) + 2 * attention_tile * padded(head_dim);
}

}  // namespace headway::kernels::simd
