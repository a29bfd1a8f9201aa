#include "kernels/cpu/simd/make_kernels.h"
#include "kernels/cpu/simd/vector_avx512.h"

namespace headway::kernels::simd {
namespace {

/// bf16 rows times bf16 inputs by VDPBF16PS, which adds products in pairs and treats subnormals as zero.
struct Bf16Dot {
  using Vector = Avx512Vector;
  using Row = BFloat16;
  using Input = BFloat16;
  using RowReg = __m512bh;
  using InputReg = __m512bh;
  static constexpr int step = 32;

  static __m512bh load_row(const BFloat16* p) { return (__m512bh)_mm512_loadu_si512(p); }
  static __m512bh load_row_partial(const BFloat16* p, int n) {
    return (__m512bh)_mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << n) - 1), p);
  }
  static __m512bh load_input(const BFloat16* p) { return load_row(p); }
  static __m512bh load_input_partial(const BFloat16* p, int n) { return load_row_partial(p, n); }
  static __m512 accumulate(__m512 sum, __m512bh row, __m512bh input) { return _mm512_dpbf16_ps(sum, row, input); }
};

}  // namespace

extern const KernelSet avx512_bf16_kernels = {.fp32 = make_table<FloatDot<Avx512Vector, float>>(),
                                              .bf16 = make_table<Bf16Dot>(),
                                              .fp16 = make_table<FloatDot<Avx512Vector, Float16>>()};

}  // namespace headway::kernels::simd
