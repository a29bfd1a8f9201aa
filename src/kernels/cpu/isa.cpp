#include "kernels/cpu/isa.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "headway/base/error.h"

namespace headway::kernels::cpu {
namespace {

constexpr std::array<std::string_view, 4> names = {"portable", "avx2", "avx512", "avx512bf16"};

Isa best_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) return __builtin_cpu_supports("avx512bf16") ? Isa::avx512_bf16 : Isa::avx512;
  if (avx2) return Isa::avx2;
#endif
  return Isa::portable;
}

Isa allowed_isa() {
  const char* wanted = std::getenv("HEADWAY_ISA");
  if (wanted == nullptr) return Isa::avx512_bf16;
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found == names.end()) {
    throw ConfigError(fmt::format("HEADWAY_ISA is '{}', not one of portable, avx2, avx512, avx512bf16", wanted));
  }
  return static_cast<Isa>(found - names.begin());
}

const simd::KernelSet& kernels_of(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512_bf16:
      return simd::avx512_bf16_kernels;
    case Isa::avx512:
      return simd::avx512_kernels;
    case Isa::avx2:
      return simd::avx2_kernels;
#endif
    default:
      return simd::portable_kernels;
  }
}

}  // namespace

std::string_view name_of(Isa isa) {
  return names[static_cast<size_t>(isa)];
}

Isa current_isa() {
  static const Isa isa = std::min(best_isa(), allowed_isa());
  return isa;
}

const simd::KernelTable& kernels_for(at::ScalarType dtype) {
  static const simd::KernelSet& kernels = kernels_of(current_isa());
  return dtype == at::kFloat ? kernels.fp32 : dtype == at::kBFloat16 ? kernels.bf16 : kernels.fp16;
}

}  // namespace headway::kernels::cpu
