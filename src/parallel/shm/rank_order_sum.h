#pragma once

#include <ATen/core/Tensor.h>

namespace headway {

/// bfloat16 and float16, which are summed in fp32.
bool is_short_float(at::ScalarType dtype);

/// The sum of the rows (dimension 0) in their order; 16-bit floats are summed in fp32 and rounded once.
at::Tensor sum_in_rank_order(const at::Tensor& rows);

}  // namespace headway
