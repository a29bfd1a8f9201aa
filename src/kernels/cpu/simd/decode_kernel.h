#pragma once

#include "kernels/cpu/simd/cached_rows.h"
#include "kernels/cpu/simd/dot.h"
#include "kernels/cpu/simd/math.h"

namespace headway::kernels::simd {
namespace {

/// One query token: bound by reading the cache, so every K and V row is read once for all heads that share it, and the
/// rows of the next tile are asked for while this one is worked on. Online softmax over tiles.
template <class Dot>
class DecodeKernel {
 public:
  using V = typename Dot::Vector;
  using T = typename Dot::Row;
  using Input = typename Dot::Input;
  using Reg = typename V::Reg;

  static void run(const DecodeCall& call) {
    for (int64_t h = 0; h < call.heads; ++h) {
      call.largest[h] = -__builtin_inff();
      call.sum[h] = 0;
    }
    for (int64_t i = 0; i < call.heads * padded(call.cache.head_dim); ++i) call.weighted[i] = 0;
    CachedRows<T> rows[2];
    int current = 0;
    rows[current].find(call.cache, call.begin, end_of(call, call.begin));
    for (int64_t begin = call.begin; begin < call.end; begin = end_of(call, begin), current = 1 - current) {
      const int64_t end = end_of(call, begin);
      const bool last = end == call.end;
      if (!last) rows[1 - current].find(call.cache, end, end_of(call, end));
      for (int64_t h = 0; h < call.heads; h += group) {
        const int64_t heads = call.heads - h < group ? call.heads - h : group;
        run_tile(call, rows[current], last || h > 0 ? nullptr : &rows[1 - current], end - begin, h, heads);
      }
    }
  }

 private:
  static constexpr int64_t group = 8;  ///< heads at once
  static constexpr int64_t tile = attention_tile;

  /// Tiles end at whole multiples of their size, wherever the first one begins.
  static int64_t end_of(const DecodeCall& call, int64_t begin) {
    const int64_t end = (begin / tile + 1) * tile;
    return end < call.end ? end : call.end;
  }

  static void run_tile(const DecodeCall& call, const CachedRows<T>& rows, const CachedRows<T>* next, int64_t positions,
                       int64_t first_head, int64_t heads) {
    alignas(64) float scores[group * tile];
    score(call, rows, next, positions, first_head, heads, scores);
    Reg factors[group];
    for (int64_t h = 0; h < heads; ++h) {
      factors[h] = soften(scores + h * tile, positions, call.largest[first_head + h], call.sum[first_head + h]);
    }
    float* weighted = call.weighted + first_head * padded(call.cache.head_dim);
    add_values(call.cache.head_dim, rows, next, positions, heads, scores, factors, weighted);
  }

  static void score(const DecodeCall& call, const CachedRows<T>& rows, const CachedRows<T>* next, int64_t positions,
                    int64_t first_head, int64_t heads, float* scores) {
    const Input* q[group];
    for (int64_t h = 0; h < heads; ++h) q[h] = static_cast<const Input*>(call.q) + (first_head + h) * call.q_stride;
    for (int64_t t = 0; t < positions; t += 4) {
      Reg sums[group * 4 + V::width];
      for (int64_t i = 0; i < heads * 4; ++i) sums[i] = V::zero();
      const T* const* ahead = next == nullptr ? nullptr : next->keys + t;
      score_heads(rows.keys + t, q, call.cache.head_dim, heads, ahead, sums);
      float values[group * 4 + V::width];
      reduce_sums<V>(sums, static_cast<int>(heads * 4), values);
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t i = 0; i < 4; ++i) scores[h * tile + t + i] = values[h * 4 + i] * call.scale;
      }
    }
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t t = positions; t < tile; ++t) scores[h * tile + t] = -__builtin_inff();
    }
  }

  static void score_heads(const T* const* keys, const Input* const* q, int64_t head_dim, int64_t heads,
                          const T* const* next, Reg* sums) {
    constexpr int most = V::dot_inputs;
    int64_t h = 0;
    for (; h + most <= heads; h += most) {
      accumulate_dots<Dot, 4, most>(keys, q + h, 0, head_dim, h == 0 ? next : nullptr, sums + h * 4);
    }
    for (; h < heads; ++h) {
      accumulate_dots<Dot, 4, 1>(keys, q + h, 0, head_dim, h == 0 ? next : nullptr, sums + h * 4);
    }
  }

  /// Scores become exp(score - largest); returns by what sums of earlier tiles must be multiplied.
  static Reg soften(float* scores, int64_t positions, float& largest, float& sum) {
    Reg most = V::set1(largest);
    for (int64_t t = 0; t < positions; t += V::width) most = V::max(V::load(scores + t), most);
    const float new_largest = V::reduce_max(most);
    const Reg factor = exponential<V>(V::set1(largest - new_largest));
    Reg total = V::zero();
    for (int64_t t = 0; t < positions; t += V::width) {
      const Reg weight = exponential<V>(V::sub(V::load(scores + t), V::set1(new_largest)));
      V::store(scores + t, weight);
      total = V::add(total, weight);
    }
    float factors[V::width];
    V::store(factors, factor);
    sum = sum * factors[0] + V::reduce_add(total);
    largest = new_largest;
    return factor;
  }

  static void add_values(int64_t head_dim, const CachedRows<T>& rows, const CachedRows<T>* next, int64_t positions,
                         int64_t heads, const float* weights, const Reg* factors, float* weighted) {
    constexpr int wide = V::outer_vectors;
    for (int64_t d = 0; d < head_dim;) {
      const int64_t left = head_dim - d;
      const int vectors = left >= wide * V::width ? wide : 1;
      for (int64_t h = 0; h < heads; h += 4) {
        const int64_t n = heads - h < 4 ? heads - h : 4;
        const CachedRows<T>* ahead = h == 0 ? next : nullptr;
        const float* w = weights + h * tile;
        float* out = weighted + h * padded(head_dim) + d;
        if (vectors == wide) {
          add_values_of<wide>(n, d, head_dim, rows, ahead, positions, w, factors + h, out);
        } else {
          add_values_of<1>(n, d, head_dim, rows, ahead, positions, w, factors + h, out);
        }
      }
      d += vectors * V::width;
    }
  }

  template <int N>
  static void add_values_of(int64_t heads, int64_t d, int64_t head_dim, const CachedRows<T>& rows,
                            const CachedRows<T>* next, int64_t positions, const float* weights, const Reg* factors,
                            float* weighted) {
    switch (heads) {
      case 1:
        return accumulate<1, N>(d, head_dim, rows, next, positions, weights, factors, weighted);
      case 2:
        return accumulate<2, N>(d, head_dim, rows, next, positions, weights, factors, weighted);
      case 3:
        return accumulate<3, N>(d, head_dim, rows, next, positions, weights, factors, weighted);
      default:
        return accumulate<4, N>(d, head_dim, rows, next, positions, weights, factors, weighted);
    }
  }

  /// weighted = weighted * factor + weights x values, for H heads and N vectors from dimension d on.
  template <int H, int N>
  static void accumulate(int64_t d, int64_t head_dim, const CachedRows<T>& rows, const CachedRows<T>* next,
                         int64_t positions, const float* weights, const Reg* factors, float* weighted) {
    const int64_t stride = padded(head_dim);
    Reg sum[H][N];
#pragma GCC unroll 4
    for (int h = 0; h < H; ++h) {
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sum[h][n] = V::mul(V::load(weighted + h * stride + n * V::width), factors[h]);
    }
    const bool partial = head_dim - d < V::width;
    for (int64_t t = 0; t < positions; ++t) {
      if (next != nullptr) {
#pragma GCC unroll 4
        for (int element = 0; element < N * V::width; element += 64 / sizeof(T)) {
          V::prefetch(next->values[t] + d + element);
        }
      }
      Reg value[N];
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
        value[n] = partial ? V::load_partial(rows.values[t] + d, static_cast<int>(head_dim - d))
                           : V::load(rows.values[t] + d + n * V::width);
      }
#pragma GCC unroll 4
      for (int h = 0; h < H; ++h) {
        const Reg weight = V::set1(weights[h * tile + t]);
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) sum[h][n] = V::multiply_add(weight, value[n], sum[h][n]);
      }
    }
#pragma GCC unroll 4
    for (int h = 0; h < H; ++h) {
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) V::store(weighted + h * stride + n * V::width, sum[h][n]);
    }
  }
};

}  // namespace
}  // namespace headway::kernels::simd
