#include <ATen/ops/empty.h>

#include <cmath>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/element.h"

namespace headway::kernels::cpu {
namespace {

template <typename T>
void normalize_row(const T* x, const T* weight, T* y, int64_t n, double eps) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<float>(x[i]) * static_cast<float>(x[i]);
  const float factor = 1.0f / std::sqrt(sum / static_cast<float>(n) + static_cast<float>(eps));
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<T>(static_cast<float>(x[i]) * factor * static_cast<float>(weight[i]));
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor input = with_dense_rows(x);
  const at::Tensor scale = weight.contiguous();
  at::Tensor output = at::empty(x.sizes(), x.options());
  with_element(x.scalar_type(), [&]<typename T>(T) {
    for (int64_t row = 0; row < x.size(0); ++row) {
      normalize_row(input.const_data_ptr<T>() + row * input.stride(0), scale.const_data_ptr<T>(),
                    output.mutable_data_ptr<T>() + row * output.stride(0), x.size(1), eps);
    }
  });
  return output;
}

at::Tensor add_rms_norm(const at::Tensor& x, at::Tensor& residual, const at::Tensor& weight, double eps) {
  residual.add_(x);
  return rms_norm(residual, weight, eps);
}

}  // namespace headway::kernels::cpu
