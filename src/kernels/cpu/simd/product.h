#pragma once

#include <cstdint>

namespace headway::kernels::simd {
namespace {

/// How blocks of attention are multiplied, c = a b: in fp32, one row of b at a step.
/// A policy says in what type the operands are held, how many rows of b a step takes (`depth`) and how they are packed:
/// element [k][n] of b lies at [k / depth][n][k % depth], element [r][k] of a at [r][k].
template <class V, typename T>
struct FloatProduct {
  using Vector = V;
  using Element = T;
  using Operand = float;
  using Reg = typename V::Reg;
  static constexpr int depth = 1;

  static Reg load(const float* b) { return V::load(b); }
  static Reg broadcast(const float* a) { return V::set1(*a); }
  static Reg accumulate(Reg sum, Reg a, Reg b) { return V::multiply_add(a, b, sum); }

  /// A row of a, filled up with zeros to padded(n).
  static void pack_row(const T* from, int64_t n, float* to) {
    for_each_vector(from, n, [&](int64_t i, Reg values) { V::store(to + i, values); });
  }

  /// A column of b, `columns` wide, from a row of n elements.
  static void pack_column(const T* from, int64_t n, int64_t columns, float* to) {
    for_each_vector(from, n, [&](int64_t i, Reg values) {
      float elements[V::width];
      V::store(elements, values);
      for (int64_t k = 0; k < V::width && i + k < n; ++k) to[(i + k) * columns] = elements[k];
    });
  }

  /// The rows of b that one step takes.
  static void pack_step(const T* const* rows, int64_t offset, int64_t n, float* to) {
    pack_row(rows[0] + offset, n, to);
  }

 private:
  template <typename Store>
  static void for_each_vector(const T* from, int64_t n, const Store& store) {
    int64_t i = 0;
    for (; i + V::width <= n; i += V::width) store(i, V::load(from + i));
    if (i < n) store(i, V::load_partial(from + i, static_cast<int>(n - i)));
  }
};

/// c[r][n] = sum over k < steps * depth of a[r][k] b[k][n] (+ c[r][n] * factors[r]), for R rows and N vectors of
/// columns. `b` has `columns` columns in all.
template <class Product, int R, int N, bool Add>
inline __attribute__((always_inline)) void multiply_tile(const typename Product::Operand* a, int64_t a_stride,
                                                         const typename Product::Operand* b, int64_t columns,
                                                         int64_t steps, const typename Product::Vector::Reg* factors,
                                                         float* c, int64_t c_stride) {
  using V = typename Product::Vector;
  typename V::Reg sum[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      sum[r][n] = Add ? V::mul(V::load(c + r * c_stride + n * V::width), factors[r]) : V::zero();
    }
  }
  for (int64_t step = 0; step < steps; ++step) {
    decltype(Product::load(b)) column[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) column[n] = Product::load(b + (step * columns + n * V::width) * Product::depth);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const auto row = Product::broadcast(a + r * a_stride + step * Product::depth);
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sum[r][n] = Product::accumulate(sum[r][n], row, column[n]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) V::store(c + r * c_stride + n * V::width, sum[r][n]);
  }
}

}  // namespace
}  // namespace headway::kernels::simd
