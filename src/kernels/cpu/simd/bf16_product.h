#pragma once

#include "kernels/cpu/simd/pair_up.h"
#include "kernels/cpu/simd/vector_avx512.h"

namespace headway::kernels::simd {
namespace {

/// Blocks of attention in bf16 by VDPBF16PS, two rows of b at a step; see FloatProduct. Softmax weights are rounded to
/// bf16 once they are known.
struct Bf16Product {
  using Vector = Avx512Vector;
  using Element = BFloat16;
  using Operand = BFloat16;
  static constexpr int depth = 2;

  static __m512bh load(const BFloat16* b) { return (__m512bh)_mm512_loadu_si512(b); }
  static __m512bh broadcast(const BFloat16* a) {
    int32_t pair;
    __builtin_memcpy(&pair, a, sizeof pair);
    return (__m512bh)_mm512_set1_epi32(pair);
  }
  static __m512 accumulate(__m512 sum, __m512bh a, __m512bh b) { return _mm512_dpbf16_ps(sum, a, b); }

  static void pack_row(const BFloat16* from, int64_t n, BFloat16* to) {
    for_each_vector(from, n, [&](int64_t i, __m512i elements, __mmask32 valid) {
      _mm512_mask_storeu_epi16(to + i, valid, elements);
    });
  }

  static void pack_column(const BFloat16* from, int64_t n, int64_t columns, BFloat16* to) {
    for_each_vector(from, n, [&](int64_t i, __m512i elements, __mmask32) {
      int32_t pairs[16];
      _mm512_storeu_si512(pairs, elements);
      for (int64_t k = 0; k < 16 && i + 2 * k < n; ++k) {
        __builtin_memcpy(to + (i / 2 + k) * columns * depth, &pairs[k], sizeof(int32_t));
      }
    });
  }

  static void pack_step(const BFloat16* const* rows, int64_t offset, int64_t n, BFloat16* to) {
    const PairUp pair_up;
    for_each_vector(rows[0] + offset, n, [&](int64_t i, __m512i even, __mmask32 valid) {
      const __m512i odd = _mm512_maskz_loadu_epi16(valid, rows[1] + offset + i);
      _mm512_storeu_si512(to + 2 * i, pair_up.low(even, odd));
      if (i + 16 < n) _mm512_storeu_si512(to + 2 * i + 32, pair_up.high(even, odd));
    });
  }

 private:
  template <typename Body>
  static void for_each_vector(const BFloat16* from, int64_t n, const Body& body) {
    for (int64_t i = 0; i < n; i += 32) {
      const __mmask32 valid = n - i >= 32 ? ~__mmask32{0} : (__mmask32{1} << (n - i)) - 1;
      body(i, _mm512_maskz_loadu_epi16(valid, from + i), valid);
    }
  }
};

}  // namespace
}  // namespace headway::kernels::simd
