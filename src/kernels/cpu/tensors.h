#pragma once

#include <ATen/core/Tensor.h>

namespace headway::kernels::cpu {

/// The tensor itself if its last dimension is dense (rows may be strided), else a contiguous copy.
inline at::Tensor with_dense_rows(const at::Tensor& tensor) {
  return tensor.stride(-1) == 1 || tensor.size(-1) <= 1 ? tensor : tensor.contiguous();
}

/// The address of the element at `offset` elements from the first.
inline const void* element_at(const at::Tensor& tensor, int64_t offset) {
  return static_cast<const char*>(tensor.const_data_ptr()) + offset * static_cast<int64_t>(tensor.element_size());
}
inline void* mutable_element_at(const at::Tensor& tensor, int64_t offset) {
  return static_cast<char*>(tensor.mutable_data_ptr()) + offset * static_cast<int64_t>(tensor.element_size());
}

}  // namespace headway::kernels::cpu
