#pragma once

#include "kernels/cpu/simd/dot.h"

namespace headway::kernels::simd {
namespace {

/// Rows of int8 times inputs of type T, which are fp32 once packed; see FloatDot. The rows' scales come afterwards.
template <class V, typename T>
struct Int8Dot {
  using Vector = V;
  using Row = Int8;
  using Element = T;
  using Input = float;
  using RowReg = typename V::Reg;
  using InputReg = typename V::Reg;
  static constexpr int step = V::width;
  static constexpr int most_inputs = V::dot_inputs;

  static RowReg load_row(const Int8* p) { return V::load(p); }
  static RowReg load_row_partial(const Int8* p, int n) { return V::load_partial(p, n); }
  static InputReg load_input(const float* p) { return V::load(p); }
  static void pack(const T* from, float* to) { V::store(to, V::load(from)); }
  static void pack_partial(const T* from, int n, float* to) { V::store(to, V::load_partial(from, n)); }
  static typename V::Reg accumulate(typename V::Reg sum, RowReg row, InputReg input) {
    return V::multiply_add(row, input, sum);
  }
};

/// A row of n elements times its scale, rounded to T.
template <class V, typename T>
void scale_int8_row(const void* row, float scale, void* output, int64_t n) {
  const auto* from = static_cast<const Int8*>(row);
  auto* to = static_cast<T*>(output);
  const typename V::Reg factor = V::set1(scale);
  int64_t i = 0;
  for (; i + V::width <= n; i += V::width) V::store(to + i, V::mul(V::load(from + i), factor));
  if (i == n) return;
  const int left = static_cast<int>(n - i);
  V::store_partial(to + i, V::mul(V::load_partial(from + i, left), factor), left);
}

}  // namespace
}  // namespace headway::kernels::simd
