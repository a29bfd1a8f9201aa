#pragma once

#include <c10/core/ScalarType.h>

#include <string_view>

#include "kernels/cpu/simd/kernel_table.h"

namespace headway::kernels::cpu {

/// Instruction sets with kernels of their own, each a superset of the one before.
enum class Isa { portable, avx2, avx512, avx512_bf16 };

std::string_view name_of(Isa isa);

/// The best that this processor has, but no better than HEADWAY_ISA (portable, avx2, avx512, avx512bf16) asks for.
/// Throws ConfigError if that names no instruction set.
Isa current_isa();

/// The kernels for elements of `dtype` (fp32, bf16 or fp16) under current_isa().
const simd::KernelTable& kernels_for(at::ScalarType dtype);

}  // namespace headway::kernels::cpu
