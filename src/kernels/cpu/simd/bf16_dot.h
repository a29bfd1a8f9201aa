#pragma once

#include "kernels/cpu/simd/bf16_product.h"
#include "kernels/cpu/simd/bf16_scores.h"
#include "kernels/cpu/simd/bf16_values.h"

namespace headway::kernels::simd {
namespace {

/// bf16 rows times bf16 inputs by VDPBF16PS, which adds products in pairs and treats subnormals as zero.
struct Bf16Dot {
  using Vector = Avx512Vector;
  using Row = BFloat16;
  using Element = BFloat16;
  using Input = BFloat16;
  using RowReg = __m512bh;
  using InputReg = __m512bh;
  using Values = Bf16Values;
  using Product = Bf16Product;
  template <int64_t Tile>
  using Scores = Bf16Scores<Tile>;
  static constexpr int step = 32;
  static constexpr int most_inputs = 8;

  static __m512bh load_row(const BFloat16* p) { return (__m512bh)_mm512_loadu_si512(p); }
  static __m512bh load_row_partial(const BFloat16* p, int n) {
    return (__m512bh)_mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << n) - 1), p);
  }
  static __m512bh load_input(const BFloat16* p) { return load_row(p); }
  static void pack(const BFloat16* from, BFloat16* to) { _mm512_storeu_si512(to, _mm512_loadu_si512(from)); }
  static void pack_partial(const BFloat16* from, int n, BFloat16* to) {
    _mm512_storeu_si512(to, (__m512i)load_row_partial(from, n));
  }
  static __m512 accumulate(__m512 sum, __m512bh row, __m512bh input) { return _mm512_dpbf16_ps(sum, row, input); }
};

}  // namespace
}  // namespace headway::kernels::simd
