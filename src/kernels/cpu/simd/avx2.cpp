#include "kernels/cpu/simd/make_kernels.h"
#include "kernels/cpu/simd/vector_avx2.h"

namespace headway::kernels::simd {

extern const KernelSet avx2_kernels = {.fp32 = make_table<FloatDot<Avx2Vector, float>>(),
                                       .bf16 = make_table<FloatDot<Avx2Vector, BFloat16>>(),
                                       .fp16 = make_table<FloatDot<Avx2Vector, Float16>>()};

}  // namespace headway::kernels::simd
