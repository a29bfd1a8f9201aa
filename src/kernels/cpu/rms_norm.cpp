#include <ATen/ops/empty.h>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/tensors.h"
#include "kernels/thread_pool.h"

namespace headway::kernels::cpu {
namespace {

at::Tensor normalize(const at::Tensor& x, const at::Tensor* residual, const at::Tensor& weight, double eps) {
  const simd::KernelTable& kernels = kernels_for(x.scalar_type());
  const int64_t hidden = x.size(1);
  at::Tensor output = at::empty(x.sizes(), x.options());
  parallel_for(x.size(0), 16384 / (hidden + 1) + 1, 1, [&](Range rows) {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      kernels.rms_norm(element_at(x, row * x.stride(0)),
                       residual == nullptr ? nullptr : mutable_element_at(*residual, row * residual->stride(0)),
                       weight.const_data_ptr(), mutable_element_at(output, row * hidden), hidden,
                       static_cast<float>(eps));
    }
  });
  return output;
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return normalize(with_dense_rows(x), nullptr, weight.contiguous(), eps);
}

at::Tensor add_rms_norm(const at::Tensor& x, at::Tensor& residual, const at::Tensor& weight, double eps) {
  if (residual.stride(1) == 1 || residual.size(1) <= 1) {
    return normalize(with_dense_rows(x), &residual, weight.contiguous(), eps);
  }
  residual.add_(x);
  return rms_norm(residual, weight, eps);
}

}  // namespace headway::kernels::cpu
