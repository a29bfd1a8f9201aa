#include <ATen/ops/linear.h>

#include "kernels/cpu/cpu_ops.h"

namespace headway::kernels::cpu {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
}

}  // namespace headway::kernels::cpu
