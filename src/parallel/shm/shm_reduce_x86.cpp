#include <immintrin.h>

#include "parallel/shm/shm_reduce.h"

// The additions and roundings of the portable kernels, many at once. BF16 is rounded with integer instructions, as
// vcvtneps2bf16 flushes subnormals: the bits would depend on the machine.

namespace headway {
namespace {

struct F32Lanes16 {
  static constexpr DType kDtype = DType::F32;
  using Stored = float;
  [[gnu::target("avx512f"), gnu::always_inline]] static inline __m512 load(const float* p) {
    return _mm512_loadu_ps(p);
  }
  [[gnu::target("avx512f"), gnu::always_inline]] static inline void store(float* p, __m512 v) {
    _mm512_storeu_ps(p, v);
  }
};

struct F16Lanes16 {
  static constexpr DType kDtype = DType::F16;
  using Stored = uint16_t;
  [[gnu::target("avx512f"), gnu::always_inline]] static inline __m512 load(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  [[gnu::target("avx512f"), gnu::always_inline]] static inline void store(uint16_t* p, __m512 v) {
    constexpr int kNearestEven = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, kNearestEven));
  }
};

struct BF16Lanes16 {
  static constexpr DType kDtype = DType::BF16;
  using Stored = uint16_t;
  [[gnu::target("avx512f"), gnu::always_inline]] static inline __m512 load(const uint16_t* p) {
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  }
  [[gnu::target("avx512f"), gnu::always_inline]] static inline void store(uint16_t* p, __m512 v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m512i result = _mm512_mask_mov_epi32(rounded, is_nan, quiet);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(result));
  }
};

struct F32Lanes8 {
  static constexpr DType kDtype = DType::F32;
  using Stored = float;
  [[gnu::target("avx2,f16c"), gnu::always_inline]] static inline __m256 load(const float* p) {
    return _mm256_loadu_ps(p);
  }
  [[gnu::target("avx2,f16c"), gnu::always_inline]] static inline void store(float* p, __m256 v) {
    _mm256_storeu_ps(p, v);
  }
};

struct F16Lanes8 {
  static constexpr DType kDtype = DType::F16;
  using Stored = uint16_t;
  [[gnu::target("avx2,f16c"), gnu::always_inline]] static inline __m256 load(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  [[gnu::target("avx2,f16c"), gnu::always_inline]] static inline void store(uint16_t* p, __m256 v) {
    constexpr int kNearestEven = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, kNearestEven));
  }
};

struct BF16Lanes8 {
  static constexpr DType kDtype = DType::BF16;
  using Stored = uint16_t;
  [[gnu::target("avx2,f16c"), gnu::always_inline]] static inline __m256 load(const uint16_t* p) {
    const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
  }
  [[gnu::target("avx2,f16c"), gnu::always_inline]] static inline void store(uint16_t* p, __m256 v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    const __m256i quiet = _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i result = _mm256_blendv_epi8(rounded, quiet, is_nan);
    const __m256i packed = _mm256_packus_epi32(result, result);  // within each half
    const __m256i joined = _mm256_permute4x64_epi64(packed, 0b1000);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(joined));
  }
};

constexpr int kUnroll = 4;

template <typename Lanes>
[[gnu::target("avx512f")]] void sum_avx512(void* output, const void* const* sources, int count, int64_t elements) {
  using Stored = typename Lanes::Stored;
  constexpr int64_t kStep = kUnroll * 16;
  int64_t i = 0;
  for (; i + kStep <= elements; i += kStep) {
    __m512 sums[kUnroll];
    const Stored* source = static_cast<const Stored*>(sources[0]) + i;
#pragma GCC unroll 4
    for (int k = 0; k < kUnroll; ++k) sums[k] = Lanes::load(source + 16 * k);
    for (int s = 1; s < count; ++s) {
      source = static_cast<const Stored*>(sources[s]) + i;
#pragma GCC unroll 4
      for (int k = 0; k < kUnroll; ++k) sums[k] = _mm512_add_ps(sums[k], Lanes::load(source + 16 * k));
    }
    Stored* target = static_cast<Stored*>(output) + i;
#pragma GCC unroll 4
    for (int k = 0; k < kUnroll; ++k) Lanes::store(target + 16 * k, sums[k]);
  }
  if (i < elements) detail::sum_rest(Lanes::kDtype, output, sources, count, i, elements);
}

template <typename Lanes>
[[gnu::target("avx2,f16c")]] void sum_avx2(void* output, const void* const* sources, int count, int64_t elements) {
  using Stored = typename Lanes::Stored;
  constexpr int64_t kStep = kUnroll * 8;
  int64_t i = 0;
  for (; i + kStep <= elements; i += kStep) {
    __m256 sums[kUnroll];
    const Stored* source = static_cast<const Stored*>(sources[0]) + i;
#pragma GCC unroll 4
    for (int k = 0; k < kUnroll; ++k) sums[k] = Lanes::load(source + 8 * k);
    for (int s = 1; s < count; ++s) {
      source = static_cast<const Stored*>(sources[s]) + i;
#pragma GCC unroll 4
      for (int k = 0; k < kUnroll; ++k) sums[k] = _mm256_add_ps(sums[k], Lanes::load(source + 8 * k));
    }
    Stored* target = static_cast<Stored*>(output) + i;
#pragma GCC unroll 4
    for (int k = 0; k < kUnroll; ++k) Lanes::store(target + 8 * k, sums[k]);
  }
  if (i < elements) detail::sum_rest(Lanes::kDtype, output, sources, count, i, elements);
}

SumFunction avx512_sum_function(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return sum_avx512<F32Lanes16>;
    case DType::F16:
      return sum_avx512<F16Lanes16>;
    case DType::BF16:
      return sum_avx512<BF16Lanes16>;
    default:
      return nullptr;
  }
}

SumFunction avx2_sum_function(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return sum_avx2<F32Lanes8>;
    case DType::F16:
      return sum_avx2<F16Lanes8>;
    case DType::BF16:
      return sum_avx2<BF16Lanes8>;
    default:
      return nullptr;
  }
}

}  // namespace

bool is_supported(VectorIsa isa) {
  switch (isa) {
    case VectorIsa::avx512:
      return __builtin_cpu_supports("avx512f");
    case VectorIsa::avx2:
      return __builtin_cpu_supports("avx2");  // F16C came before it
    default:
      return true;
  }
}

SumFunction detail::vector_sum_function(DType dtype, VectorIsa isa) {
  switch (isa) {
    case VectorIsa::avx512:
      return avx512_sum_function(dtype);
    case VectorIsa::avx2:
      return avx2_sum_function(dtype);
    default:
      return nullptr;
  }
}

}  // namespace headway
