#pragma once

#include <immintrin.h>

#include "kernels/cpu/simd/element.h"

namespace headway::kernels::simd {
namespace {

/// Eight floats in AVX2 with FMA and F16C; see PortableVector for the members.
struct Avx2Vector {
  using Reg = __m256;
  static constexpr int width = 8;
  static constexpr int dot_inputs = 4;
  static constexpr int outer_rows = 6;
  static constexpr int outer_vectors = 2;
  static constexpr int dot_rows(int inputs) { return inputs <= 2 ? 4 : 3; }

  static Reg set1(float value) { return _mm256_set1_ps(value); }
  static Reg zero() { return _mm256_setzero_ps(); }

  static Reg load(const float* p) { return _mm256_loadu_ps(p); }
  static Reg load(const BFloat16* p) { return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  static Reg load(const Float16* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  static Reg load(const Int8* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  template <typename T>
  static Reg load_partial(const T* p, int n) {
    T elements[width] = {};
    __builtin_memcpy(elements, p, n * sizeof(T));
    return load(elements);
  }

  static void store(float* p, Reg r) { _mm256_storeu_ps(p, r); }
  static void store(BFloat16* p, Reg r) {
    const __m256i bits = _mm256_castps_si256(r);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(r, r, _CMP_UNORD_Q));
    const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }
  static void store(Float16* p, Reg r) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(r, _MM_FROUND_TO_NEAREST_INT));
  }
  template <typename T>
  static void store_partial(T* p, Reg r, int n) {
    T elements[width];
    store(elements, r);
    __builtin_memcpy(p, elements, n * sizeof(T));
  }

  static Reg add(Reg a, Reg b) { return _mm256_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm256_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm256_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) { return _mm256_div_ps(a, b); }
  static Reg max(Reg a, Reg b) { return _mm256_max_ps(a, b); }
  static Reg min(Reg a, Reg b) { return _mm256_min_ps(a, b); }
  static Reg multiply_add(Reg a, Reg b, Reg c) { return _mm256_fmadd_ps(a, b, c); }
  static Reg round(Reg a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static Reg scale(Reg a, Reg n) {
    const __m256i power = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(a, _mm256_castsi256_ps(power));
  }
  static Reg zero_below(Reg x, Reg limit, Reg r) { return _mm256_andnot_ps(_mm256_cmp_ps(x, limit, _CMP_LT_OQ), r); }
  static float reduce_add(Reg a) {
    const __m128 half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)));
  }
  static float reduce_max(Reg a) {
    const __m128 half = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 quarter = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(quarter, _mm_movehdup_ps(quarter)));
  }
  template <int Count>
  static void reduce_add_block(const Reg* a, float* out) {
    const auto vector = [&](int i) { return i < Count ? a[i] : zero(); };
    const Reg low = _mm256_hadd_ps(_mm256_hadd_ps(vector(0), vector(1)), _mm256_hadd_ps(vector(2), vector(3)));
    const Reg high = _mm256_hadd_ps(_mm256_hadd_ps(vector(4), vector(5)), _mm256_hadd_ps(vector(6), vector(7)));
    store(out, add(_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)));
  }
  __attribute__((always_inline)) static void prefetch(const void* p) {
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
  }

 private:
  static Reg widen(__m128i halves) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16)); }
};

}  // namespace
}  // namespace headway::kernels::simd
