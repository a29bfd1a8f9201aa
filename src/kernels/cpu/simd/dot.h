#pragma once

#include <cstdint>

#include "kernels/cpu/simd/element.h"

namespace headway::kernels::simd {
namespace {

/// How rows of type T are multiplied with inputs and summed in fp32: by converting the row; the inputs are fp32.
template <class V, typename T>
struct FloatDot {
  using Vector = V;
  using Row = T;
  using Input = float;
  using RowReg = typename V::Reg;
  using InputReg = typename V::Reg;
  static constexpr int step = V::width;  ///< elements that one accumulation takes

  static RowReg load_row(const T* p) { return V::load(p); }
  static RowReg load_row_partial(const T* p, int n) { return V::load_partial(p, n); }
  static InputReg load_input(const float* p) { return V::load(p); }
  static InputReg load_input_partial(const float* p, int n) { return V::load_partial(p, n); }
  static typename V::Reg accumulate(typename V::Reg sum, RowReg row, InputReg input) {
    return V::multiply_add(row, input, sum);
  }
};

/// Adds the products of elements [begin, end) of R rows and M inputs to sums[m * R + r]. Every sum takes the same
/// steps in the same order whatever R and M are. While it reads, it asks for the lines that are `ahead` elements
/// further in every row (0: none).
template <class Dot, int R, int M>
inline __attribute__((always_inline)) void accumulate_dots(const typename Dot::Row* const* rows,
                                                           const typename Dot::Input* const* inputs, int64_t begin,
                                                           int64_t end, const typename Dot::Row* const* next,
                                                           typename Dot::Vector::Reg* sums) {
  using V = typename Dot::Vector;
  constexpr int line = 64 / sizeof(typename Dot::Row);
  static_assert(line % Dot::step == 0);
  typename V::Reg sum[M * R];
#pragma GCC unroll 16
  for (int i = 0; i < M * R; ++i) sum[i] = sums[i];
  int64_t k = begin;
  for (; k + line <= end; k += line) {
    if (next != nullptr) {
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) V::prefetch(next[r] + (k - begin));
    }
#pragma GCC unroll 16
    for (int part = 0; part < line; part += Dot::step) {
      typename Dot::RowReg row[R];
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) row[r] = Dot::load_row(rows[r] + k + part);
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m) {
        const typename Dot::InputReg input = Dot::load_input(inputs[m] + k + part);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) sum[m * R + r] = Dot::accumulate(sum[m * R + r], row[r], input);
      }
    }
  }
  for (; k < end; k += Dot::step) {
    const int n = end - k < Dot::step ? static_cast<int>(end - k) : Dot::step;
    typename Dot::RowReg row[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) row[r] = Dot::load_row_partial(rows[r] + k, n);
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m) {
      const typename Dot::InputReg input = Dot::load_input_partial(inputs[m] + k, n);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sum[m * R + r] = Dot::accumulate(sum[m * R + r], row[r], input);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < M * R; ++i) sums[i] = sum[i];
}

/// The sums of `count` vectors into `out`, which has room for whole blocks of V::width.
template <class V>
inline void reduce_sums(typename V::Reg* sums, int count, float* out) {
  for (int i = count; i % V::width != 0; ++i) sums[i] = V::zero();
  for (int i = 0; i < count; i += V::width) V::reduce_add_block(sums + i, out + i);
}

}  // namespace
}  // namespace headway::kernels::simd
