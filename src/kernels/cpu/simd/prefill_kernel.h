#pragma once

#include "kernels/cpu/simd/cached_rows.h"
#include "kernels/cpu/simd/math.h"
#include "kernels/cpu/simd/product.h"

namespace headway::kernels::simd {
namespace {

/// A block of query tokens: bound by arithmetic, so a tile of K (transposed) and one of V are packed once for all rows,
/// a row being one head of one token. Online softmax over tiles.
template <class Product>
class PrefillKernel {
 public:
  static void run(const PrefillCall& call) { PrefillKernel(call).run(); }

 private:
  using V = typename Product::Vector;
  using T = typename Product::Element;
  using Operand = typename Product::Operand;
  using Reg = typename V::Reg;
  static constexpr int64_t tile = attention_tile;
  static constexpr int64_t depth = Product::depth;
  static constexpr int R = V::outer_rows;
  static constexpr int N = V::outer_vectors;

  explicit PrefillKernel(const PrefillCall& call)
      : call_(call), dim_(call.cache.head_dim), stride_(padded(dim_)), rows_(call.tokens * call.heads) {
    const int64_t room = padded(rows_ + 16);
    weighted_ = call.scratch;
    largest_ = weighted_ + room * stride_;
    sum_ = largest_ + room;
    float* operands = sum_ + room;
    q_ = reinterpret_cast<Operand*>(operands);
    keys_ = reinterpret_cast<Operand*>(operands + room * stride_);
    values_ = reinterpret_cast<Operand*>(operands + (room + tile) * stride_);
    for (int64_t i = 0; i < room * stride_; ++i) weighted_[i] = 0;
    for (int64_t i = 0; i < room * stride_; ++i) q_[i] = Operand{};
    for (int64_t i = 0; i < tile * stride_; ++i) keys_[i] = values_[i] = Operand{};
    for (int64_t i = 0; i < room; ++i) {
      largest_[i] = -__builtin_inff();
      sum_[i] = 0;
    }
  }

  void run() {
    for (int64_t row = 0; row < rows_; ++row) {
      const T* from = static_cast<const T*>(call_.q) + (row / call_.heads) * call_.q_token_stride +
                      (row % call_.heads) * call_.q_head_stride;
      Product::pack_row(from, dim_, q_ + row * stride_);
    }
    const int64_t end = call_.first_position + call_.tokens;
    int64_t begin = call_.first_position + 1 - call_.window;
    begin = begin < 0 ? 0 : begin / tile * tile;
    for (; begin < end; begin += tile) {
      const int64_t positions = end - begin < tile ? end - begin : tile;
      pack(begin, positions);
      for (int64_t row = 0; row < rows_; row += R) run_rows(row, begin, positions);
    }
    store_outputs();
  }

  /// The rest of a short tile repeats its last position; no row sees it.
  void pack(int64_t begin, int64_t positions) {
    SlotPointers<T, tile> slots;
    slots.find(call_.cache, begin, begin + positions);
    for (int64_t t = 0; t < tile; ++t) {
      Product::pack_column(slots.keys()[t] + call_.offset, dim_, tile, keys_ + t * depth);
    }
    for (int64_t t = 0; t < tile; t += depth) {
      Product::pack_step(slots.values() + t, call_.offset, dim_, values_ + t * stride_);
    }
  }

  void run_rows(int64_t row, int64_t begin, int64_t positions) {
    const int64_t last_row = row + R < rows_ ? row + R - 1 : rows_ - 1;
    const int64_t seen = clamp(position_of(last_row) + 1 - begin, positions);
    if (seen == 0) return;
    alignas(64) float scores[R * tile];
    for (int64_t t = 0; t < seen; t += N * V::width) {
      multiply_tile<Product, R, N, false>(q_ + row * stride_, stride_, keys_ + t * depth, tile,
                                          (dim_ + depth - 1) / depth, nullptr, scores + t, tile);
    }
    alignas(64) Operand weights[R * tile];
    Reg factors[R];
    for (int r = 0; r < R; ++r) factors[r] = soften(row + r, begin, seen, scores + r * tile, weights + r * tile);
    float* weighted = weighted_ + row * stride_;
    const int64_t steps = (seen + depth - 1) / depth;
    int64_t d = 0;
    for (; d + N * V::width <= stride_; d += N * V::width) {
      multiply_tile<Product, R, N, true>(weights, tile, values_ + d * depth, stride_, steps, factors, weighted + d,
                                         stride_);
    }
    for (; d < stride_; d += V::width) {
      multiply_tile<Product, R, 1, true>(weights, tile, values_ + d * depth, stride_, steps, factors, weighted + d,
                                         stride_);
    }
  }

  /// exp(scale * score - largest) of the positions that a row sees, 0 for the others up to the next whole vector.
  /// Returns by what its sums of earlier tiles must be multiplied.
  Reg soften(int64_t row, int64_t begin, int64_t seen, float* scores, Operand* weights) {
    const int64_t first = row < rows_ ? clamp(position_of(row) + 1 - call_.window - begin, seen) : 0;
    const int64_t end = row < rows_ ? clamp(position_of(row) + 1 - begin, seen) : 0;
    if (first >= end) {
      for (int64_t t = 0; t < seen; t += V::width) V::store(weights + t, V::zero());
      return V::set1(1.0f);
    }
    for (int64_t t = 0; t < first; ++t) scores[t] = -__builtin_inff();
    for (int64_t t = end; t < tile; ++t) scores[t] = -__builtin_inff();
    const Reg scale = V::set1(call_.scale);
    Reg most = V::set1(largest_[row]);
    for (int64_t t = 0; t < seen; t += V::width) most = V::max(V::mul(V::load(scores + t), scale), most);
    const float largest = V::reduce_max(most);
    Reg total = V::zero();
    for (int64_t t = 0; t < seen; t += V::width) {
      V::store(weights + t, exponential<V>(V::sub(V::mul(V::load(scores + t), scale), V::set1(largest))));
      total = V::add(total, V::load(weights + t));
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
      for (int64_t d = 0; d < dim_; d += V::width) {
        const Reg result = V::mul(V::load(weighted_ + row * stride_ + d), factor);
        dim_ - d >= V::width ? V::store(to + d, result) : V::store_partial(to + d, result, static_cast<int>(dim_ - d));
      }
    }
  }

  int64_t position_of(int64_t row) const { return call_.first_position + row / call_.heads; }
  static int64_t clamp(int64_t value, int64_t most) { return value < 0 ? 0 : value < most ? value : most; }

  const PrefillCall& call_;
  const int64_t dim_;
  const int64_t stride_;
  const int64_t rows_;
  float* weighted_;
  float* largest_;
  float* sum_;
  Operand* q_;       // rows of stride_
  Operand* keys_;    // [head_dim, tile], packed
  Operand* values_;  // [tile, stride_], packed
};

}  // namespace
}  // namespace headway::kernels::simd
