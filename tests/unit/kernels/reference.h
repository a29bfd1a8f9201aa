#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/ops.h"

// The operators written out in fp64 on the CPU, straight from their definitions. Inputs of any dtype and device.
namespace headway::kernels::reference {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);
at::Tensor silu_and_mul(const at::Tensor& gate_up);
at::Tensor rotary_embedding(const at::Tensor& heads, const at::Tensor& cos_sin, const std::vector<int64_t>& positions);

/// Attention of one sequence: q [new tokens, q heads, head_dim] over keys and values [context, kv heads, head_dim].
at::Tensor attention(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                     const std::vector<HeadRun>& runs, const AttentionOptions& options);

}  // namespace headway::kernels::reference
