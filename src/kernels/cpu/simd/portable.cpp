#include "kernels/cpu/simd/make_kernels.h"
#include "kernels/cpu/simd/vector_portable.h"

namespace headway::kernels::simd {

extern const KernelSet portable_kernels = {.fp32 = make_table<FloatDot<PortableVector, float>>(),
                                           .bf16 = make_table<FloatDot<PortableVector, BFloat16>>(),
                                           .fp16 = make_table<FloatDot<PortableVector, Float16>>()};

}  // namespace headway::kernels::simd
