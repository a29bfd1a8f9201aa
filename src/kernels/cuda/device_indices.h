#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace headway::kernels::cuda {

/// Host indices as a tensor on a device, by one copy.
at::Tensor to_device(const std::vector<int64_t>& indices, const at::Device& device);
at::Tensor to_device(const std::vector<int32_t>& indices, const at::Device& device);

}  // namespace headway::kernels::cuda
