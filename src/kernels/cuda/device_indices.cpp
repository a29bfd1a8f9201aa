#include "kernels/cuda/device_indices.h"

#include <ATen/ops/from_blob.h>

namespace headway::kernels::cuda {
namespace {

template <typename Index>
at::Tensor copy(const std::vector<Index>& indices, at::ScalarType dtype, const at::Device& device) {
  const at::Tensor host = at::from_blob(const_cast<Index*>(indices.data()), {static_cast<int64_t>(indices.size())},
                                        at::TensorOptions().dtype(dtype));
  return host.to(device, dtype, /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

at::Tensor to_device(const std::vector<int64_t>& indices, const at::Device& device) {
  return copy(indices, at::kLong, device);
}

at::Tensor to_device(const std::vector<int32_t>& indices, const at::Device& device) {
  return copy(indices, at::kInt, device);
}

}  // namespace headway::kernels::cuda
