#pragma once

#include <immintrin.h>

#include <cstdint>

namespace headway::kernels::simd {
namespace {

struct alignas(64) PairIndices {
  uint16_t low[32] = {};
  uint16_t high[32] = {};
  constexpr PairIndices() {
    for (uint16_t i = 0; i < 32; ++i) {
      low[i] = static_cast<uint16_t>(i / 2 + i % 2 * 32);
      high[i] = static_cast<uint16_t>(low[i] + 16);
    }
  }
};
constexpr PairIndices pair_indices;

/// Takes the 16-bit elements of two vectors in turns, so that VDPBF16PS adds up a pair of them.
class PairUp {
 public:
  __m512i low(__m512i a, __m512i b) const { return _mm512_permutex2var_epi16(a, low_, b); }    ///< elements 0 .. 15
  __m512i high(__m512i a, __m512i b) const { return _mm512_permutex2var_epi16(a, high_, b); }  ///< 16 .. 31

 private:
  __m512i low_ = _mm512_load_si512(pair_indices.low);
  __m512i high_ = _mm512_load_si512(pair_indices.high);
};

}  // namespace
}  // namespace headway::kernels::simd
