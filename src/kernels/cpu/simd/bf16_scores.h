#pragma once

#include "kernels/cpu/simd/vector_avx512.h"

namespace headway::kernels::simd {
namespace {

/// Transposes 16 x 16 elements of 32 bits.
inline __attribute__((always_inline)) void transpose(__m512i (&rows)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // rows[4 i + c]: column 4 lane + c of rows 4 i .. 4 i + 3, in every 128-bit lane
    rows[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    rows[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    rows[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    rows[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    t[c] = _mm512_shuffle_i32x4(rows[c], rows[4 + c], 0x88);           // lanes 0 and 2 of rows 0 .. 7
    t[4 + c] = _mm512_shuffle_i32x4(rows[c], rows[4 + c], 0xdd);       // lanes 1 and 3
    t[8 + c] = _mm512_shuffle_i32x4(rows[8 + c], rows[12 + c], 0x88);  // the same of rows 8 .. 15
    t[12 + c] = _mm512_shuffle_i32x4(rows[8 + c], rows[12 + c], 0xdd);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    rows[c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0x88);
    rows[8 + c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0xdd);
    rows[4 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0x88);
    rows[12 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0xdd);
  }
}

/// q . k by VDPBF16PS, with a position in each element of a vector: the keys of a tile are transposed first, pair of
/// dimensions by pair, which costs less than adding up the elements of a vector for every score. See DotScores.
template <int64_t Tile>
class Bf16Scores {
 public:
  using Packed = BFloat16;
  static constexpr int64_t most_heads = 8;

  static int64_t packed_size(int64_t head_dim) { return (head_dim + 31) / 32 * 32; }

  static void pack(const BFloat16* q, int64_t stride, int64_t heads, int64_t head_dim, BFloat16* packed) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t d = 0; d < head_dim; d += 32, packed += 32) {
        _mm512_storeu_si512(packed, _mm512_maskz_loadu_epi16(first(head_dim - d), q + h * stride + d));
      }
    }
  }

  static int64_t steps(int64_t heads, int64_t positions, int64_t head_dim) { return (head_dim + 31) / 32 * 16; }

  template <typename AskAhead>
  static void compute(const BFloat16* packed, int64_t heads, int64_t head_dim, const BFloat16* const* keys,
                      int64_t offset, int64_t positions, float* scores, const AskAhead& ask_ahead) {
    alignas(64) int32_t pairs[16 * Tile];  // [pair of dimensions, position]
    for (int64_t d = 0; d < head_dim; d += 32) {
      const __mmask32 valid = first(head_dim - d);
      for (int64_t t = 0; t < Tile; t += 16) {
        __m512i rows[16];
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) rows[i] = _mm512_maskz_loadu_epi16(valid, keys[t + i] + offset + d);
        transpose(rows);
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) _mm512_store_si512(pairs + i * Tile + t, rows[i]);
      }
      add_pairs<most_heads>(packed + d, packed_size(head_dim), heads, pairs, d == 0, scores, ask_ahead);
    }
  }

 private:
  static constexpr int vectors = Tile / 16;

  static __mmask32 first(int64_t n) {
    return n >= 32 ? ~__mmask32{0} : (__mmask32{1} << n) - 1;
  }

  /// Adds the products of 16 pairs of dimensions for `heads` <= H heads, or sets the scores to them.
  template <int H, typename AskAhead>
  static void add_pairs(const BFloat16* q, int64_t stride, int64_t heads, const int32_t* pairs, bool set, float* scores,
                        const AskAhead& ask_ahead) {
    if constexpr (H > 1) {
      if (heads < H) return add_pairs<H - 1>(q, stride, heads, pairs, set, scores, ask_ahead);
    }
    __m512 sums[H][vectors];
#pragma GCC unroll 8
    for (int h = 0; h < H; ++h) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        sums[h][v] = set ? _mm512_setzero_ps() : _mm512_load_ps(scores + h * Tile + 16 * v);
      }
    }
    for (int pair = 0; pair < 16; ++pair) {
      ask_ahead();
      __m512bh keys[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) keys[v] = (__m512bh)_mm512_load_si512(pairs + pair * Tile + 16 * v);
#pragma GCC unroll 8
      for (int h = 0; h < H; ++h) {
        int32_t element;
        __builtin_memcpy(&element, q + h * stride + 2 * pair, sizeof element);
        const __m512bh query = (__m512bh)_mm512_set1_epi32(element);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sums[h][v] = _mm512_dpbf16_ps(sums[h][v], keys[v], query);
      }
    }
#pragma GCC unroll 8
    for (int h = 0; h < H; ++h) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) _mm512_store_ps(scores + h * Tile + 16 * v, sums[h][v]);
    }
  }
};

}  // namespace
}  // namespace headway::kernels::simd
