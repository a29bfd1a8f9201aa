#pragma once

#include "kernels/cpu/simd/dot.h"
#include "kernels/cpu/simd/kernel_table.h"

namespace headway::kernels::simd {
namespace {

/// Weight rows are streamed once, four at a time, against all tokens of a group; between, a chunk of them stays in the
/// first-level cache.
template <class Dot>
class LinearKernel {
 public:
  using V = typename Dot::Vector;
  using T = typename Dot::Row;
  using Input = typename Dot::Input;

  static void run(const LinearCall& call, int64_t out_begin, int64_t out_end) {
    for (int64_t token = 0; token < call.tokens; token += group) {
      const int64_t tokens = call.tokens - token < group ? call.tokens - token : group;
      int64_t row = out_begin;
      for (; row + 4 <= out_end; row += 4) run_rows<4>(call, row, token, tokens);
      for (; row < out_end; ++row) run_rows<1>(call, row, token, tokens);
    }
  }

 private:
  static constexpr int64_t group = 32;                ///< tokens
  static constexpr int64_t chunk = 2048 / sizeof(T);  ///< elements of each row

  template <int R>
  static void run_rows(const LinearCall& call, int64_t row, int64_t token, int64_t tokens) {
    const T* rows[R];
    for (int r = 0; r < R; ++r) rows[r] = static_cast<const T*>(call.weight) + (row + r) * call.in;
    const Input* inputs[group];
    for (int64_t m = 0; m < tokens; ++m) {
      inputs[m] = static_cast<const Input*>(call.inputs) + (token + m) * call.input_stride;
    }
    typename V::Reg sums[group * R + V::width];
    for (int64_t i = 0; i < tokens * R; ++i) sums[i] = V::zero();
    for (int64_t begin = 0; begin < call.in; begin += chunk) {
      const bool last = begin + chunk >= call.in;
      const int64_t end = last ? call.in : begin + chunk;
      const T* next[R];
      for (int r = 0; r < R; ++r) next[r] = last ? rows[r] + R * call.in : rows[r] + end;
      run_chunk<R>(rows, inputs, begin, end, next, tokens, sums);
    }
    store<R>(call, row, token, tokens, sums);
  }

  template <int R>
  static void run_chunk(const T* const* rows, const Input* const* inputs, int64_t begin, int64_t end,
                        const T* const* next, int64_t tokens, typename V::Reg* sums) {
    constexpr int most = V::dot_inputs;
    int64_t m = 0;
    for (; m + most <= tokens; m += most) {
      accumulate_dots<Dot, R, most>(rows, inputs + m, begin, end, m == 0 ? next : nullptr, sums + m * R);
    }
    if constexpr (most > 2) {
      if (m + 2 <= tokens) {
        accumulate_dots<Dot, R, 2>(rows, inputs + m, begin, end, m == 0 ? next : nullptr, sums + m * R);
        m += 2;
      }
    }
    if (m < tokens) accumulate_dots<Dot, R, 1>(rows, inputs + m, begin, end, m == 0 ? next : nullptr, sums + m * R);
  }

  template <int R>
  static void store(const LinearCall& call, int64_t row, int64_t token, int64_t tokens, typename V::Reg* sums) {
    float values[group * R + V::width];
    reduce_sums<V>(sums, static_cast<int>(tokens * R), values);
    float bias[4] = {};
    if (call.bias != nullptr) V::store_partial(bias, V::load_partial(static_cast<const T*>(call.bias) + row, R), R);
    for (int64_t m = 0; m < tokens; ++m) {
      float biased[4];
      for (int r = 0; r < R; ++r) biased[r] = values[m * R + r] + bias[r];
      V::store_partial(static_cast<T*>(call.output) + (token + m) * call.output_stride + row,
                       V::load_partial(biased, R), R);
    }
  }
};

}  // namespace
}  // namespace headway::kernels::simd
