#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>

#include "kernels/cuda/cuda_ops.h"

namespace headway::kernels::cuda {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return at::rms_norm(x, {x.size(1)}, weight, eps);
}

at::Tensor add_rms_norm(const at::Tensor& x, at::Tensor& residual, const at::Tensor& weight, double eps) {
  residual.add_(x);
  return rms_norm(residual, weight, eps);
}

at::Tensor silu_and_mul(const at::Tensor& gate_up) {
  const int64_t n = gate_up.size(1) / 2;
  return at::silu(gate_up.narrow(1, 0, n)).mul_(gate_up.narrow(1, n, n));
}

at::Tensor embedding(const at::Tensor& ids, const at::Tensor& weight, Range rows) {
  if (rows.empty()) return at::zeros({ids.size(0), weight.size(1)}, weight.options());
  const at::Tensor local = ids.sub(rows.begin);
  const at::Tensor foreign = local.lt(0).logical_or_(local.ge(rows.size()));
  return at::embedding(weight, local.masked_fill(foreign, 0)).masked_fill_(foreign.unsqueeze(1), 0);
}

}  // namespace headway::kernels::cuda
