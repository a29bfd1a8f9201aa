#include <ATen/ops/empty.h>

#include <cmath>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/element.h"

namespace headway::kernels::cpu {

at::Tensor silu_and_mul(const at::Tensor& gate_up) {
  const at::Tensor input = with_dense_rows(gate_up);
  const int64_t n = gate_up.size(1) / 2;
  at::Tensor output = at::empty({gate_up.size(0), n}, gate_up.options());
  with_element(gate_up.scalar_type(), [&]<typename T>(T) {
    for (int64_t row = 0; row < output.size(0); ++row) {
      const T* gate = input.const_data_ptr<T>() + row * input.stride(0);
      T* y = output.mutable_data_ptr<T>() + row * n;
      for (int64_t i = 0; i < n; ++i) {
        const float g = gate[i];
        y[i] = static_cast<T>(g / (1.0f + std::exp(-g)) * static_cast<float>(gate[n + i]));
      }
    }
  });
  return output;
}

}  // namespace headway::kernels::cpu
