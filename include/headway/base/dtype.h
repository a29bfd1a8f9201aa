#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headway {

/// Element types of checkpoint tensors and of computation. The names are those of the safetensors format.
enum class DType { BOOL, U8, I8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, F64, F8_E4M3, F8_E5M2 };

/// Bytes of one element.
int64_t size_of(DType dtype);

/// The safetensors spelling: "F32", "BF16", ...
std::string_view name_of(DType dtype);

/// The dtype with that safetensors spelling, or nothing.
std::optional<DType> dtype_from_safetensors(std::string_view name);

/// The floating dtype that a config or an option means by "float32", "fp32", "torch.bfloat16", "bf16", "float16",
/// "fp16", "half", ..., or nothing.
std::optional<DType> dtype_from_config(std::string_view name);

}  // namespace headway
