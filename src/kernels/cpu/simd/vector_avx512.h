#pragma once

#include <immintrin.h>

#include "kernels/cpu/simd/element.h"

namespace headway::kernels::simd {
namespace {

/// Sixteen floats in AVX-512 (F, BW, DQ, VL); see PortableVector for the members.
struct Avx512Vector {
  using Reg = __m512;
  static constexpr int width = 16;
  static constexpr int dot_inputs = 6;
  static constexpr int outer_rows = 6;
  static constexpr int outer_vectors = 4;
  static constexpr int dot_rows(int inputs) { return inputs <= 6 ? 4 : 3; }

  static Reg set1(float value) { return _mm512_set1_ps(value); }
  static Reg zero() { return _mm512_setzero_ps(); }

  static Reg load(const float* p) { return _mm512_loadu_ps(p); }
  static Reg load(const BFloat16* p) { return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static Reg load(const Float16* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static Reg load(const Int8* p) { return convert(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  static Reg load_partial(const float* p, int n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static Reg load_partial(const BFloat16* p, int n) { return widen(_mm256_maskz_loadu_epi16(first(n), p)); }
  static Reg load_partial(const Int8* p, int n) { return convert(_mm_maskz_loadu_epi8(first(n), p)); }
  static Reg load_partial(const Float16* p, int n) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n), p)); }

  static void store(float* p, Reg r) { _mm512_storeu_ps(p, r); }
  static void store(BFloat16* p, Reg r) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(r)); }
  static void store(Float16* p, Reg r) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), halve(r)); }
  static void store_partial(float* p, Reg r, int n) { _mm512_mask_storeu_ps(p, first(n), r); }
  static void store_partial(BFloat16* p, Reg r, int n) { _mm256_mask_storeu_epi16(p, first(n), narrow(r)); }
  static void store_partial(Float16* p, Reg r, int n) { _mm256_mask_storeu_epi16(p, first(n), halve(r)); }

  static Reg add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm512_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) { return _mm512_div_ps(a, b); }
  static Reg max(Reg a, Reg b) { return _mm512_max_ps(a, b); }
  static Reg min(Reg a, Reg b) { return _mm512_min_ps(a, b); }
  static Reg multiply_add(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
  static Reg round(Reg a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static Reg scale(Reg a, Reg n) { return _mm512_scalef_ps(a, n); }
  static Reg zero_below(Reg x, Reg limit, Reg r) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), r);
  }
  static float reduce_add(Reg a) { return _mm512_reduce_add_ps(a); }
  static float reduce_max(Reg a) { return _mm512_reduce_max_ps(a); }
  template <int Count>
  static void reduce_add_block(const Reg* a, float* out) {
    const Reg none = zero();
    const auto pair = [&](int first, int second) __attribute__((always_inline)) {
      return add_lanes(add_quad<Count>(a, first), second < (Count + 3) / 4 ? add_quad<Count>(a, second) : none);
    };
    store(out, add_lanes(pair(0, 1), Count > 8 ? pair(2, 3) : none));
  }
  __attribute__((always_inline)) static void prefetch(const void* p) {
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
  }

 private:
  static __mmask16 first(int n) { return static_cast<__mmask16>((1u << n) - 1); }
  static Reg convert(__m128i bytes) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)); }
  static Reg widen(__m256i halves) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16)); }
  static __m256i narrow(Reg r) {
    const __m512i bits = _mm512_castps_si512(r);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(r, r, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_blend_epi32(nan, rounded, quiet), 16));
  }
  static __m256i halve(Reg r) { return _mm512_cvtps_ph(r, _MM_FROUND_TO_NEAREST_INT); }
  /// Of vectors 4 * quad and the three after it: their four partial sums in every 128-bit lane.
  template <int Count>
  static Reg add_quad(const Reg* a, int quad) {
    const auto vector = [&](int i) { return 4 * quad + i < Count ? a[4 * quad + i] : zero(); };
    const Reg even = add(_mm512_unpacklo_ps(vector(0), vector(1)), _mm512_unpackhi_ps(vector(0), vector(1)));
    const Reg odd = add(_mm512_unpacklo_ps(vector(2), vector(3)), _mm512_unpackhi_ps(vector(2), vector(3)));
    return add(_mm512_shuffle_ps(even, odd, 0x44), _mm512_shuffle_ps(even, odd, 0xee));
  }
  /// Adds the 128-bit lanes of each vector in pairs: [a0+a1, a2+a3, b0+b1, b2+b3].
  static Reg add_lanes(Reg a, Reg b) { return add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd)); }
};

}  // namespace
}  // namespace headway::kernels::simd
