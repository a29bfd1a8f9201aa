#pragma once

#include <cstdint>
#include <string_view>

#include "headway/base/dtype.h"

namespace headway {

/// output[i] = sources[0][i] + sources[1][i] + ... + sources[count - 1][i], summed in that order: 16-bit floats in
/// fp32 and rounded once to nearest even, integers modulo 2^bits. `output` may be one of the sources. The result has
/// the same bits with every instruction set.
using SumFunction = void (*)(void* output, const void* const* sources, int count, int64_t elements);

enum class VectorIsa { portable, avx2, avx512 };
std::string_view name_of(VectorIsa isa);
bool is_supported(VectorIsa isa);
VectorIsa best_vector_isa();

/// Throws ArgumentError for a dtype that cannot be summed.
SumFunction sum_function(DType dtype, VectorIsa isa = best_vector_isa());

namespace detail {
/// The kernel for an instruction set, or null where there is none for that dtype.
SumFunction vector_sum_function(DType dtype, VectorIsa isa);
/// Elements [begin, elements) of the sum of F32, F16 or BF16, for what a vector kernel leaves over.
void sum_rest(DType dtype, void* output, const void* const* sources, int count, int64_t begin, int64_t elements);
}  // namespace detail

}  // namespace headway
