#include "kernels/cpu/simd/make_kernels.h"
#include "kernels/cpu/simd/vector_avx512.h"

namespace headway::kernels::simd {

extern const KernelSet avx512_kernels = {.fp32 = make_table<FloatDot<Avx512Vector, float>>(),
                                         .bf16 = make_table<FloatDot<Avx512Vector, BFloat16>>(),
                                         .fp16 = make_table<FloatDot<Avx512Vector, Float16>>()};

}  // namespace headway::kernels::simd
