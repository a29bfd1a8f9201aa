#pragma once

#include "kernels/cpu/simd/decode_kernel.h"
#include "kernels/cpu/simd/elementwise_kernels.h"
#include "kernels/cpu/simd/int8_dot.h"
#include "kernels/cpu/simd/kernel_table.h"
#include "kernels/cpu/simd/linear_kernel.h"
#include "kernels/cpu/simd/merge_kernel.h"
#include "kernels/cpu/simd/prefill_kernel.h"

namespace headway::kernels::simd {
namespace {

/// The table of the element type that `Dot` multiplies.
template <class Dot>
constexpr KernelTable make_table() {
  using V = typename Dot::Vector;
  using T = typename Dot::Row;
  using Rows = Elementwise<V, T>;
  return {.pack_inputs = LinearKernel<Dot>::pack,
          .linear = LinearKernel<Dot>::run,
          .pack_int8_inputs = LinearKernel<Int8Dot<V, T>>::pack,
          .int8_linear = LinearKernel<Int8Dot<V, T>>::run,
          .scale_int8_row = scale_int8_row<V, T>,
          .rms_norm = Rows::rms_norm,
          .silu_and_mul = Rows::silu_and_mul,
          .rotate_head = Rows::rotate_head,
          .pack_heads = DecodeKernel<Dot>::pack,
          .attend_decode = DecodeKernel<Dot>::run,
          .merge_splits = merge_splits<V, T>,
          .attend_prefill = PrefillKernel<typename Dot::Product>::run};
}

}  // namespace
}  // namespace headway::kernels::simd
