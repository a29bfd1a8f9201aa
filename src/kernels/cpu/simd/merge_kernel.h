#pragma once

#include "kernels/cpu/simd/kernel_table.h"
#include "kernels/cpu/simd/math.h"

namespace headway::kernels::simd {
namespace {

/// The softmax over a whole context from those over its splits, taken in order.
template <class V, typename T>
void merge_splits(const MergeCall& call) {
  using Reg = typename V::Reg;
  float largest = -__builtin_inff();
  for (int64_t s = 0; s < call.splits; ++s) {
    const float split = call.largest[s * call.row_stride];
    largest = split > largest ? split : largest;
  }
  Reg sum = V::zero();
  for (int64_t s = 0; s < call.splits; ++s) {
    float* split = call.largest + s * call.row_stride;
    const Reg factor = exponential<V>(V::set1(*split - largest));
    sum = V::multiply_add(factor, V::set1(call.sum[s * call.row_stride]), sum);
    V::store_partial(split, factor, 1);  // the factor takes the place of the largest score
  }
  for (int64_t d = 0; d < call.head_dim; d += V::width) {
    Reg total = V::zero();
    for (int64_t s = 0; s < call.splits; ++s) {
      const float* weighted = call.weighted + s * call.row_stride * padded(call.head_dim) + d;
      total = V::multiply_add(V::set1(call.largest[s * call.row_stride]), V::load(weighted), total);
    }
    const Reg result = V::div(total, sum);
    T* output = static_cast<T*>(call.output) + d;
    const int64_t left = call.head_dim - d;
    left >= V::width ? V::store(output, result) : V::store_partial(output, result, static_cast<int>(left));
  }
}

}  // namespace
}  // namespace headway::kernels::simd
