#pragma once

#include "kernels/cpu/simd/pair_up.h"
#include "kernels/cpu/simd/vector_avx512.h"

namespace headway::kernels::simd {
namespace {

/// Softmax weights, rounded to bf16 once they are known, times bf16 values by VDPBF16PS, two positions at a time.
struct Bf16Values {
  using V = Avx512Vector;
  using Weight = BFloat16;
  static constexpr int64_t positions_per_step = 2;

  template <int H, typename AskAhead>
  static void accumulate(const BFloat16* const* rows, int64_t offset, int64_t head_dim, int64_t positions,
                         const BFloat16* weights, int64_t weight_stride, const __m512* factors, float* weighted,
                         int64_t stride, const AskAhead& ask_ahead) {
    constexpr int N = 2;  // blocks of 32 dimensions
    int64_t d = 0;
    if (head_dim >= 32 * N) {
      accumulate_block<H, N>(rows, offset, head_dim, positions, weights, weight_stride, factors, weighted, stride, 0,
                             ask_ahead);
      d = 32 * N;
    }
    const auto nothing = [] {};
    for (; d + 32 * N <= head_dim; d += 32 * N) {
      accumulate_block<H, N>(rows, offset, head_dim, positions, weights, weight_stride, factors, weighted, stride, d,
                             nothing);
    }
    for (; d < head_dim; d += 32) {
      accumulate_block<H, 1>(rows, offset, head_dim, positions, weights, weight_stride, factors, weighted, stride, d,
                             nothing);
    }
  }

 private:
  template <int H, int N, typename AskAhead>
  static void accumulate_block(const BFloat16* const* rows, int64_t offset, int64_t head_dim, int64_t positions,
                               const BFloat16* weights, int64_t weight_stride, const __m512* factors, float* weighted,
                               int64_t stride, int64_t d, const AskAhead& ask_ahead) {
    const PairUp pair_up;
    // A last block may be less than 32 wide; its second vector is then not there to be stored.
    const bool half = head_dim - d <= 16;
    const __mmask32 valid = head_dim - d >= 32 ? ~__mmask32{0} : (__mmask32{1} << (head_dim - d)) - 1;
    __m512 sum[H][2 * N];
#pragma GCC unroll 4
    for (int h = 0; h < H; ++h) {
#pragma GCC unroll 4
      for (int n = 0; n < 2 * N; ++n) {
        sum[h][n] = half && n == 1 ? V::zero() : V::mul(V::load(weighted + h * stride + d + 16 * n), factors[h]);
      }
    }
    for (int64_t t = 0; t < positions; t += 2) {
      ask_ahead();
      __m512bh value[2 * N];
#pragma GCC unroll 2
      for (int n = 0; n < N; ++n) {
        const BFloat16* even = rows[t] + offset + d + 32 * n;
        const BFloat16* odd = rows[t + 1] + offset + d + 32 * n;
        const __m512i a = N > 1 ? _mm512_loadu_si512(even) : _mm512_maskz_loadu_epi16(valid, even);
        const __m512i b = N > 1 ? _mm512_loadu_si512(odd) : _mm512_maskz_loadu_epi16(valid, odd);
        value[2 * n] = (__m512bh)pair_up.low(a, b);
        value[2 * n + 1] = (__m512bh)pair_up.high(a, b);
      }
#pragma GCC unroll 4
      for (int h = 0; h < H; ++h) {
        int32_t pair;
        __builtin_memcpy(&pair, weights + h * weight_stride + t, sizeof pair);
        const __m512bh weight = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 4
        for (int n = 0; n < 2 * N; ++n) sum[h][n] = _mm512_dpbf16_ps(sum[h][n], value[n], weight);
      }
    }
#pragma GCC unroll 4
    for (int h = 0; h < H; ++h) {
#pragma GCC unroll 4
      for (int n = 0; n < 2 * N; ++n) {
        if (!(half && n == 1)) V::store(weighted + h * stride + d + 16 * n, sum[h][n]);
      }
    }
  }
};

}  // namespace
}  // namespace headway::kernels::simd
