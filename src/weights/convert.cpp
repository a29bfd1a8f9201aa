#include "weights/convert.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstring>

// Compiled with -O3: the loops below are left to the compiler's vectoriser.
namespace headway {
namespace {

template <typename Element>
void copy_elements(const std::byte* source, std::byte* target, int64_t count) {
  if (count > 0) std::memcpy(target, source, static_cast<size_t>(count) * sizeof(Element));
}

template <typename From, typename To>
[[gnu::always_inline]] inline void convert_elements(const std::byte* source, std::byte* target, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    From from;
    std::memcpy(&from, source + i * static_cast<int64_t>(sizeof(From)), sizeof(From));
    const To to = static_cast<To>(static_cast<float>(from));
    std::memcpy(target + i * static_cast<int64_t>(sizeof(To)), &to, sizeof(To));
  }
}

template <typename From, typename To>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] void convert_avx512(const std::byte* source, std::byte* target,
                                                                          int64_t count) {
  convert_elements<From, To>(source, target, count);
}

template <typename From, typename To>
[[gnu::target("avx2")]] void convert_avx2(const std::byte* source, std::byte* target, int64_t count) {
  convert_elements<From, To>(source, target, count);
}

template <typename From, typename To>
void convert_baseline(const std::byte* source, std::byte* target, int64_t count) {
  convert_elements<From, To>(source, target, count);
}

template <typename From, typename To>
Converter widest_converter() {
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (avx512) return convert_avx512<From, To>;
  return __builtin_cpu_supports("avx2") ? convert_avx2<From, To> : convert_baseline<From, To>;
}

template <typename From>
Converter converter_to(c10::ScalarType to) {
  if (c10::CppTypeToScalarType<From>::value == to) return copy_elements<From>;
  switch (to) {
    case c10::kFloat:
      return widest_converter<From, float>();
    case c10::kHalf:
      return widest_converter<From, c10::Half>();
    case c10::kBFloat16:
      return widest_converter<From, c10::BFloat16>();
    default:
      return nullptr;
  }
}

}  // namespace

Converter converter_between(DType from, c10::ScalarType to) {
  switch (from) {
    case DType::F32:
      return converter_to<float>(to);
    case DType::F16:
      return converter_to<c10::Half>(to);
    case DType::BF16:
      return converter_to<c10::BFloat16>(to);
    default:
      return nullptr;
  }
}

}  // namespace headway
