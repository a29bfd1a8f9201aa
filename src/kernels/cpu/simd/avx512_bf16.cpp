#include "kernels/cpu/simd/bf16_dot.h"
#include "kernels/cpu/simd/make_kernels.h"

namespace headway::kernels::simd {

extern const KernelSet avx512_bf16_kernels = {.fp32 = make_table<FloatDot<Avx512Vector, float>>(),
                                              .bf16 = make_table<Bf16Dot>(),
                                              .fp16 = make_table<FloatDot<Avx512Vector, Float16>>()};

}  // namespace headway::kernels::simd
