#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "headway/base/error.h"

namespace headway::kernels::cpu {

/// Calls `body` with a value of the C++ type of `dtype`. Other dtypes have been refused by checks.h.
template <typename Body>
auto with_element(at::ScalarType dtype, Body&& body) {
  switch (dtype) {
    case at::kFloat:
      return body(float{});
    case at::kBFloat16:
      return body(c10::BFloat16{});
    case at::kHalf:
      return body(c10::Half{});
    default:
      throw ArgumentError("kernels: a dtype other than fp32, bf16 and fp16");
  }
}

/// The tensor itself if its last dimension is dense (rows may be strided), else a contiguous copy.
inline at::Tensor with_dense_rows(const at::Tensor& tensor) {
  return tensor.stride(-1) == 1 || tensor.size(-1) <= 1 ? tensor : tensor.contiguous();
}

}  // namespace headway::kernels::cpu
