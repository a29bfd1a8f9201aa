#include "headway/base/dtype.h"

#include <array>

namespace headway {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<Entry, 15> kEntries{{{DType::BOOL, "BOOL", 1},
                                          {DType::U8, "U8", 1},
                                          {DType::I8, "I8", 1},
                                          {DType::I16, "I16", 2},
                                          {DType::U16, "U16", 2},
                                          {DType::I32, "I32", 4},
                                          {DType::U32, "U32", 4},
                                          {DType::I64, "I64", 8},
                                          {DType::U64, "U64", 8},
                                          {DType::F16, "F16", 2},
                                          {DType::BF16, "BF16", 2},
                                          {DType::F32, "F32", 4},
                                          {DType::F64, "F64", 8},
                                          {DType::F8_E4M3, "F8_E4M3", 1},
                                          {DType::F8_E5M2, "F8_E5M2", 1}}};

constexpr std::array<std::pair<std::string_view, DType>, 9> kConfigNames{{{"float32", DType::F32},
                                                                          {"float", DType::F32},
                                                                          {"fp32", DType::F32},
                                                                          {"bfloat16", DType::BF16},
                                                                          {"bf16", DType::BF16},
                                                                          {"float16", DType::F16},
                                                                          {"half", DType::F16},
                                                                          {"fp16", DType::F16},
                                                                          {"float64", DType::F64}}};

const Entry& entry_of(DType dtype) {
  return kEntries[static_cast<size_t>(dtype)];
}

}  // namespace

int64_t size_of(DType dtype) {
  return entry_of(dtype).bytes;
}

std::string_view name_of(DType dtype) {
  return entry_of(dtype).name;
}

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_config(std::string_view name) {
  constexpr std::string_view kPrefix = "torch.";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  for (const auto& [known, dtype] : kConfigNames) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace headway
