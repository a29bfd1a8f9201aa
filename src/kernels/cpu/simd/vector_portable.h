#pragma once

#include <cstdint>

#include "kernels/cpu/simd/element.h"

namespace headway::kernels::simd {
namespace {

/// Four floats in GCC's portable vectors: SSE2 on any x86-64, NEON on ARM.
///
/// Every vector type offers the same members; the kernels are templates over it. `load`, `store` convert from and to
/// the element types; the `_partial` ones touch the first n < width elements only and read the others as zero.
struct PortableVector {
  using Reg = float __attribute__((vector_size(16)));
  using Int = int32_t __attribute__((vector_size(16)));
  static constexpr int width = 4;
  static constexpr int dot_inputs = 2;  ///< most inputs of a dot-product tile
  static constexpr int outer_rows = 4;  ///< rows and vectors of an outer-product tile
  static constexpr int outer_vectors = 2;
  /// Rows of a dot-product tile: as many as keep its sums in registers.
  static constexpr int dot_rows(int) { return 4; }

  static Reg set1(float value) { return Reg{value, value, value, value}; }
  static Reg zero() { return set1(0.0f); }

  static Reg load(const float* p) {
    Reg r;
    __builtin_memcpy(&r, p, sizeof r);
    return r;
  }
  static Reg load(const BFloat16* p) { return Reg{to_float(p[0]), to_float(p[1]), to_float(p[2]), to_float(p[3])}; }
  static Reg load(const Float16* p) { return Reg{to_float(p[0]), to_float(p[1]), to_float(p[2]), to_float(p[3])}; }
  static Reg load(const Int8* p) { return Reg{to_float(p[0]), to_float(p[1]), to_float(p[2]), to_float(p[3])}; }
  template <typename T>
  static Reg load_partial(const T* p, int n) {
    Reg r = zero();
    for (int i = 0; i < n; ++i) r[i] = to_float(p[i]);
    return r;
  }

  template <typename T>
  static void store(T* p, Reg r) {
    store_partial(p, r, width);
  }
  template <typename T>
  static void store_partial(T* p, Reg r, int n) {
    for (int i = 0; i < n; ++i) from_float(r[i], p + i);
  }

  // max and min give b where either is NaN.
  static Reg add(Reg a, Reg b) { return a + b; }
  static Reg sub(Reg a, Reg b) { return a - b; }
  static Reg mul(Reg a, Reg b) { return a * b; }
  static Reg div(Reg a, Reg b) { return a / b; }
  static Reg max(Reg a, Reg b) { return a > b ? a : b; }
  static Reg min(Reg a, Reg b) { return a < b ? a : b; }
  static Reg multiply_add(Reg a, Reg b, Reg c) { return a * b + c; }
  static Reg round(Reg a) {
    const Reg magic = set1(12582912.0f);  // 1.5 * 2^23: the sum has no room for a fraction
    return (a + magic) - magic;
  }
  /// a * 2^n for whole n in [-126, 127].
  static Reg scale(Reg a, Reg n) {
    const Int power = (__builtin_convertvector(n, Int) + 127) << 23;
    Reg factor;
    __builtin_memcpy(&factor, &power, sizeof factor);
    return a * factor;
  }
  /// r where x >= limit or x is NaN, else 0.
  static Reg zero_below(Reg x, Reg limit, Reg r) { return x < limit ? zero() : r; }
  static float reduce_add(Reg a) { return (a[0] + a[1]) + (a[2] + a[3]); }
  static float reduce_max(Reg a) {
    const float low = a[0] > a[1] ? a[0] : a[1], high = a[2] > a[3] ? a[2] : a[3];
    return low > high ? low : high;
  }
  /// The sum of each of Count <= width vectors, in order; what follows them in `out`, which has room for `width`, is
  /// anything.
  template <int Count>
  static void reduce_add_block(const Reg* a, float* out) {
    for (int i = 0; i < Count; ++i) out[i] = reduce_add(a[i]);
  }
  /// Always inlined: GCC takes a function that only prefetches for one without effect and drops calls to it.
  __attribute__((always_inline)) static void prefetch(const void* p) { __builtin_prefetch(p); }

 private:
  static uint32_t bits_of(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
  }
  static float float_of(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
  }

  static float to_float(float value) { return value; }
  static float to_float(Int8 value) { return static_cast<float>(value.value); }
  static float to_float(BFloat16 value) { return float_of(static_cast<uint32_t>(value.bits) << 16); }
  static float to_float(Float16 value) {
    const uint32_t magnitude = value.bits & 0x7fffu;
    const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
    if (magnitude >= 0x7c00u) return float_of(sign | 0x7f800000u | (magnitude << 13));  // infinity and NaN
    return float_of(sign | bits_of(float_of(magnitude << 13) * 0x1p112f));              // rebias; subnormals too
  }

  static void from_float(float value, float* out) { *out = value; }
  static void from_float(float value, BFloat16* out) {
    const uint32_t bits = bits_of(value);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    out->bits = static_cast<uint16_t>(nan ? (bits >> 16) | 0x40u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
  static void from_float(float value, Float16* out) {
    const uint32_t magnitude = bits_of(value) & 0x7fffffffu;
    uint32_t half;
    if (magnitude > 0x7f800000u) {
      half = 0x7e00u;
    } else if (magnitude >= 0x47800000u) {  // 2^16 and above
      half = 0x7c00u;
    } else if (magnitude < 0x38800000u) {  // below 2^-14: 0.5 has the units of a subnormal half in its last place
      half = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
    } else {
      half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    }
    out->bits = static_cast<uint16_t>(half | ((bits_of(value) >> 16) & 0x8000u));
  }
};

}  // namespace
}  // namespace headway::kernels::simd
