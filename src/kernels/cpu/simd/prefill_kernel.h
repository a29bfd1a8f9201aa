#pragma once

#include "kernels/cpu/simd/cached_rows.h"
#include "kernels/cpu/simd/math.h"

namespace headway::kernels::simd {
namespace {

/// c[r][n] = a[r][k] b[k][n] (+ c[r][n] * factors[r]) for R rows and N vectors of columns.
template <class V, int R, int N, bool Add>
inline __attribute__((always_inline)) void multiply_tile(const float* a, int64_t a_stride, const float* b,
                                                         int64_t b_stride, int64_t depth,
                                                         const typename V::Reg* factors, float* c, int64_t c_stride) {
  typename V::Reg sum[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      sum[r][n] = Add ? V::mul(V::load(c + r * c_stride + n * V::width), factors[r]) : V::zero();
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    typename V::Reg column[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) column[n] = V::load(b + k * b_stride + n * V::width);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const typename V::Reg row = V::set1(a[r * a_stride + k]);
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sum[r][n] = V::multiply_add(row, column[n], sum[r][n]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) V::store(c + r * c_stride + n * V::width, sum[r][n]);
  }
}

/// A block of query tokens: bound by arithmetic, so a tile of K (transposed) and one of V are unpacked to fp32 once for
/// all rows, a row being one head of one token. Online softmax over tiles.
template <class V, typename T>
class PrefillKernel {
 public:
  using Reg = typename V::Reg;

  static void run(const PrefillCall& call) { PrefillKernel(call).run(); }

 private:
  static constexpr int64_t tile = attention_tile;
  static constexpr int R = V::outer_rows;

  explicit PrefillKernel(const PrefillCall& call)
      : call_(call), dim_(call.cache.head_dim), stride_(padded(dim_)), rows_(call.tokens * call.heads) {
    const int64_t room = padded(rows_ + 16);
    q_ = call.scratch;
    weighted_ = q_ + room * stride_;
    keys_ = weighted_ + room * stride_;
    values_ = keys_ + tile * stride_;
    largest_ = values_ + tile * stride_;
    sum_ = largest_ + room;
    for (int64_t i = 0; i < 2 * room * stride_; ++i) q_[i] = 0;
    for (int64_t i = 0; i < room; ++i) {
      largest_[i] = -__builtin_inff();
      sum_[i] = 0;
    }
  }

  void run() {
    load_queries();
    const int64_t end = call_.first_position + call_.tokens;
    int64_t begin = call_.first_position + 1 - call_.window;
    begin = begin < 0 ? 0 : begin / tile * tile;
    for (; begin < end; begin += tile) {
      const int64_t positions = end - begin < tile ? end - begin : tile;
      unpack(begin, positions);
      for (int64_t row = 0; row < rows_; row += R) run_rows(row, begin, positions);
    }
    store_outputs();
  }

  void load_queries() {
    for (int64_t row = 0; row < rows_; ++row) {
      const T* from = static_cast<const T*>(call_.q) + (row / call_.heads) * call_.q_token_stride +
                      (row % call_.heads) * call_.q_head_stride;
      for_each_vector(
          [&](int64_t d, int n) { V::store(q_ + row * stride_ + d, V::mul(load(from + d, n), V::set1(call_.scale))); });
    }
  }

  void unpack(int64_t begin, int64_t positions) {
    SlotPointers<T, tile> slots;
    slots.find(call_.cache, begin, begin + positions);
    for (int64_t t = 0; t < positions; ++t) {
      for_each_vector([&](int64_t d, int n) {
        V::store(values_ + t * stride_ + d, load(slots.values()[t] + call_.offset + d, n));
        float key[V::width];
        V::store(key, load(slots.keys()[t] + call_.offset + d, n));
        for (int i = 0; i < n; ++i) keys_[(d + i) * tile + t] = key[i];
      });
    }
    for (int64_t d = 0; d < dim_; ++d) {
      for (int64_t t = positions; t < tile; ++t) keys_[d * tile + t] = 0;
    }
  }

  void run_rows(int64_t row, int64_t begin, int64_t positions) {
    alignas(64) float scores[R * tile];
    constexpr int N = V::outer_vectors;
    for (int64_t t = 0; t < positions; t += N * V::width) {
      multiply_tile<V, R, N, false>(q_ + row * stride_, stride_, keys_ + t, tile, dim_, nullptr, scores + t, tile);
    }
    Reg factors[R];
    for (int r = 0; r < R; ++r) factors[r] = soften(row + r, begin, positions, scores + r * tile);
    float* weighted = weighted_ + row * stride_;
    int64_t d = 0;
    for (; d + N * V::width <= stride_; d += N * V::width) {
      multiply_tile<V, R, N, true>(scores, tile, values_ + d, stride_, positions, factors, weighted + d, stride_);
    }
    for (; d < stride_; d += V::width) {
      multiply_tile<V, R, 1, true>(scores, tile, values_ + d, stride_, positions, factors, weighted + d, stride_);
    }
  }

  /// The scores of the positions that a row sees become exp(score - largest), the others 0; returns by what its sums
  /// of earlier tiles must be multiplied.
  Reg soften(int64_t row, int64_t begin, int64_t positions, float* scores) {
    const int64_t last = call_.first_position + row / call_.heads;
    const int64_t first_seen = clamp(last + 1 - call_.window - begin, positions);
    const int64_t end_seen = clamp(last + 1 - begin, positions);
    if (row >= rows_ || first_seen >= end_seen) {
      for (int64_t t = 0; t < positions; ++t) scores[t] = 0;
      return V::set1(1.0f);
    }
    for (int64_t t = 0; t < first_seen; ++t) scores[t] = -__builtin_inff();
    for (int64_t t = end_seen; t < tile; ++t) scores[t] = -__builtin_inff();
    Reg most = V::set1(largest_[row]);
    for (int64_t t = 0; t < positions; t += V::width) most = V::max(V::load(scores + t), most);
    const float largest = V::reduce_max(most);
    Reg total = V::zero();
    for (int64_t t = 0; t < positions; t += V::width) {
      const Reg weight = exponential<V>(V::sub(V::load(scores + t), V::set1(largest)));
      V::store(scores + t, weight);
      total = V::add(total, weight);
    }
    const Reg factor = exponential<V>(V::set1(largest_[row] - largest));
    float factors[V::width];
    V::store(factors, factor);
    sum_[row] = sum_[row] * factors[0] + V::reduce_add(total);
    largest_[row] = largest;
    return factor;
  }

  void store_outputs() {
    for (int64_t row = 0; row < rows_; ++row) {
      T* to = static_cast<T*>(call_.output) + (row / call_.heads) * call_.output_token_stride +
              (row % call_.heads) * call_.output_head_stride;
      const Reg factor = V::set1(1.0f / sum_[row]);
      for_each_vector([&](int64_t d, int n) {
        const Reg result = V::mul(V::load(weighted_ + row * stride_ + d), factor);
        n == V::width ? V::store(to + d, result) : V::store_partial(to + d, result, n);
      });
    }
  }

  template <typename Body>
  void for_each_vector(Body&& body) const {
    int64_t d = 0;
    for (; d + V::width <= dim_; d += V::width) body(d, V::width);
    if (d < dim_) body(d, static_cast<int>(dim_ - d));
  }

  static Reg load(const T* p, int n) { return n == V::width ? V::load(p) : V::load_partial(p, n); }
  static int64_t clamp(int64_t value, int64_t most) { return value < 0 ? 0 : value < most ? value : most; }

  const PrefillCall& call_;
  const int64_t dim_;
  const int64_t stride_;
  const int64_t rows_;
  float* q_;
  float* weighted_;
  float* keys_;    // [head_dim, tile]
  float* values_;  // [tile, head_dim padded]
  float* largest_;
  float* sum_;
};

}  // namespace
}  // namespace headway::kernels::simd
