#include <ATen/ops/cat.h>

#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/device_indices.h"

namespace headway::kernels::cuda {

void rotary_embedding(at::Tensor& heads, const at::Tensor& cos_sin, const std::vector<int64_t>& positions) {
  const int64_t half = heads.size(2) / 2;
  const at::Tensor rows = cos_sin.index_select(0, to_device(positions, heads.device())).unsqueeze(1);
  const at::Tensor cos = rows.narrow(2, 0, half);
  const at::Tensor sin = rows.narrow(2, half, half);
  const at::Tensor first = heads.narrow(2, 0, half).to(at::kFloat);
  const at::Tensor second = heads.narrow(2, half, half).to(at::kFloat);
  heads.copy_(at::cat({first.mul(cos).sub_(second.mul(sin)), second.mul(cos).add_(first.mul(sin))}, 2));
}

}  // namespace headway::kernels::cuda
