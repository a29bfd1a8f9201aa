#pragma once

#include <ATen/core/Tensor.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "support/safetensors_writer.h"

namespace headway::test {

/// The name that safetensors files give to the dtype of a tensor.
inline std::string safetensors_dtype(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return "F32";
    case at::kHalf:
      return "F16";
    case at::kBFloat16:
      return "BF16";
    case at::kByte:
      return "U8";
    case at::kInt:
      return "I32";
    default:
      throw std::invalid_argument("no tests use this dtype");
  }
}

/// A tensor as it is written to a safetensors file.
inline RawTensor raw(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor data = tensor.contiguous();
  const auto bytes = static_cast<size_t>(data.nbytes());
  return {name, safetensors_dtype(data.scalar_type()), data.sizes().vec(),
          bytes == 0 ? std::string() : std::string(static_cast<const char*>(data.data_ptr()), bytes)};
}

}  // namespace headway::test
