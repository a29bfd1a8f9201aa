#include "parallel/shm/shm_reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "headway/base/error.h"

namespace headway {
namespace {

/// How an element is held in memory and added up.
template <typename T>
struct Plain {
  using Stored = T;
  using Sum = T;
  static Sum widen(Stored value) { return value; }
  static Stored narrow(Sum value) { return value; }
};

struct BFloat16 {
  using Stored = uint16_t;
  using Sum = float;
  static float widen(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
  static uint16_t narrow(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);  // a quiet NaN
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

struct Float16 {
  using Stored = uint16_t;
  using Sum = float;

  static float widen(uint16_t bits) {
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
    const uint32_t magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00) {  // infinity, or a NaN, made quiet
      const uint32_t quiet = magnitude > 0x7c00 ? 0x00400000u : 0u;
      return std::bit_cast<float>(sign | 0x7f800000u | magnitude << 13 | quiet);
    }
    if (magnitude < 0x0400) {  // zero or subnormal: a multiple of 2^-24
      const float value = static_cast<float>(magnitude) * 0x1p-24f;
      return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
    }
    return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  }

  static uint16_t narrow(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00);  // from 65520 on: infinity
    if (magnitude < 0x38800000u) {  // subnormal: the addition rounds to multiples of 2^-24
      const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
    }
    const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return static_cast<uint16_t>(sign | (rounded - (112u << 23)) >> 13);
  }
};

/// Block by block, so that the running sums stay in the first-level cache and the loops can be vectorised.
template <typename Element>
void sum_from(void* output, const void* const* sources, int count, int64_t begin, int64_t elements) {
  using Stored = typename Element::Stored;
  constexpr int64_t kBlock = 256;
  typename Element::Sum sums[kBlock];
  for (int64_t first = begin; first < elements; first += kBlock) {
    const int64_t n = std::min(kBlock, elements - first);
    const Stored* source = static_cast<const Stored*>(sources[0]) + first;
    for (int64_t i = 0; i < n; ++i) sums[i] = Element::widen(source[i]);
    for (int s = 1; s < count; ++s) {
      source = static_cast<const Stored*>(sources[s]) + first;
      for (int64_t i = 0; i < n; ++i) sums[i] += Element::widen(source[i]);
    }
    Stored* target = static_cast<Stored*>(output) + first;
    for (int64_t i = 0; i < n; ++i) target[i] = Element::narrow(sums[i]);
  }
}

template <typename Element>
void sum_portable(void* output, const void* const* sources, int count, int64_t elements) {
  sum_from<Element>(output, sources, count, 0, elements);
}

SumFunction portable_sum_function(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return sum_portable<Plain<float>>;
    case DType::F64:
      return sum_portable<Plain<double>>;
    case DType::F16:
      return sum_portable<Float16>;
    case DType::BF16:
      return sum_portable<BFloat16>;
    case DType::U8:
    case DType::I8:
      return sum_portable<Plain<uint8_t>>;  // two's complement: signed sums have the same bits
    case DType::U16:
    case DType::I16:
      return sum_portable<Plain<uint16_t>>;
    case DType::U32:
    case DType::I32:
      return sum_portable<Plain<uint32_t>>;
    case DType::U64:
    case DType::I64:
      return sum_portable<Plain<uint64_t>>;
    default:
      throw ArgumentError(fmt::format("elements of dtype {} cannot be summed", name_of(dtype)));
  }
}

}  // namespace

void detail::sum_rest(DType dtype, void* output, const void* const* sources, int count, int64_t begin,
                      int64_t elements) {
  if (dtype == DType::F32) return sum_from<Plain<float>>(output, sources, count, begin, elements);
  if (dtype == DType::BF16) return sum_from<BFloat16>(output, sources, count, begin, elements);
  return sum_from<Float16>(output, sources, count, begin, elements);
}

std::string_view name_of(VectorIsa isa) {
  switch (isa) {
    case VectorIsa::avx512:
      return "avx512";
    case VectorIsa::avx2:
      return "avx2";
    default:
      return "portable";
  }
}

VectorIsa best_vector_isa() {
  static const VectorIsa best = is_supported(VectorIsa::avx512) ? VectorIsa::avx512
                                : is_supported(VectorIsa::avx2) ? VectorIsa::avx2
                                                                : VectorIsa::portable;
  return best;
}

SumFunction sum_function(DType dtype, VectorIsa isa) {
  const SumFunction vectorised = detail::vector_sum_function(dtype, isa);
  return vectorised != nullptr ? vectorised : portable_sum_function(dtype);
}

}  // namespace headway
