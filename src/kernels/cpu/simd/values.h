#pragma once

#include <cstdint>

namespace headway::kernels::simd {
namespace {

/// How softmax weights are multiplied with rows of values of type T: in fp32.
template <class V, typename T>
struct FloatValues {
  using Weight = float;
  static constexpr int64_t positions_per_step = 1;

  /// weighted = weighted * factor + weights x values, for H heads: `weights` is [H, weight_stride], `weighted`
  /// [H, stride], `rows` the values of each position. Calls ask_ahead() at every position.
  template <int H, typename AskAhead>
  static void accumulate(const T* const* rows, int64_t offset, int64_t head_dim, int64_t positions,
                         const float* weights, int64_t weight_stride, const typename V::Reg* factors, float* weighted,
                         int64_t stride, const AskAhead& ask_ahead) {
    const auto block = [&]<int N, bool Partial, bool Ask>(int64_t d) {
      typename V::Reg sum[H][N];
#pragma GCC unroll 4
      for (int h = 0; h < H; ++h) {
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) sum[h][n] = V::mul(V::load(weighted + h * stride + d + n * V::width), factors[h]);
      }
      for (int64_t t = 0; t < positions; ++t) {
        if (Ask) ask_ahead();
        const T* row = rows[t] + offset + d;
        typename V::Reg value[N];
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) {
          value[n] = Partial ? V::load_partial(row, static_cast<int>(head_dim - d)) : V::load(row + n * V::width);
        }
#pragma GCC unroll 4
        for (int h = 0; h < H; ++h) {
          const typename V::Reg weight = V::set1(weights[h * weight_stride + t]);
#pragma GCC unroll 4
          for (int n = 0; n < N; ++n) sum[h][n] = V::multiply_add(weight, value[n], sum[h][n]);
        }
      }
#pragma GCC unroll 4
      for (int h = 0; h < H; ++h) {
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) V::store(weighted + h * stride + d + n * V::width, sum[h][n]);
      }
    };
    constexpr int wide = V::outer_vectors;
    int64_t d = 0;
    if (wide * V::width <= head_dim) {
      block.template operator()<wide, false, true>(0);
      d = wide * V::width;
    }
    for (; d + wide * V::width <= head_dim; d += wide * V::width) block.template operator()<wide, false, false>(d);
    for (; d + V::width <= head_dim; d += V::width) block.template operator()<1, false, false>(d);
    if (d < head_dim) block.template operator()<1, true, false>(d);
  }
};

}  // namespace
}  // namespace headway::kernels::simd
