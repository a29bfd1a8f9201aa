#pragma once

#include "headway/weights/parameter.h"
#include "kernels/ops.h"

namespace headway {

/// kernels::linear with a parameter as it is held.
inline at::Tensor linear_of(const at::Tensor& x, const Parameter& weight, const at::Tensor& bias = {}) {
  if (weight.scales.defined()) return kernels::linear(x, kernels::Int8Matrix{weight.tensor, weight.scales}, bias);
  return kernels::linear(x, weight.tensor, bias);
}

/// kernels::embedding with a table as it is held.
inline at::Tensor embedding_of(const at::Tensor& ids, const Parameter& table, Range rows) {
  if (!table.scales.defined()) return kernels::embedding(ids, table.tensor, rows);
  return kernels::embedding(ids, kernels::Int8Matrix{table.tensor, table.scales}, rows, table.int8_computes_in);
}

}  // namespace headway
