#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

namespace headway::testing {

/// Whether two tensors have one shape and differ nowhere by more than `bound`; says where they differ most.
::testing::AssertionResult close(const at::Tensor& actual, const at::Tensor& expected, double bound);

/// The bound on fp32 logits against transformers.
inline constexpr double kFp32Bound = 1e-4;

}  // namespace headway::testing
