#include <ATen/ops/empty.h>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/tensors.h"
#include "kernels/thread_pool.h"

namespace headway::kernels::cpu {

at::Tensor silu_and_mul(const at::Tensor& gate_up) {
  const simd::KernelTable& kernels = kernels_for(gate_up.scalar_type());
  const at::Tensor input = with_dense_rows(gate_up);
  const int64_t n = gate_up.size(1) / 2;
  at::Tensor output = at::empty({gate_up.size(0), n}, gate_up.options());
  parallel_for(output.size(0), 8192 / (n + 1) + 1, 1, [&](Range rows) {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const int64_t gate = row * input.stride(0);
      kernels.silu_and_mul(element_at(input, gate), element_at(input, gate + n), mutable_element_at(output, row * n),
                           n);
    }
  });
  return output;
}

}  // namespace headway::kernels::cpu
