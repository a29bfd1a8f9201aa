#pragma once

#include <cstdint>

namespace headway::kernels {

/// From how many tokens on a linear on the CPU goes to ATen's GEMM, by element type. Below, Headway's own kernel
/// streams the weights once and gives every token the same bits whatever else is in the batch. Ranks that must agree
/// bit by bit need the same values: one decides and tells the others.
///
/// The defaults are fixed, so that they agree without being told: for bf16, where a batch is bound by arithmetic on a
/// processor with VDPBF16PS (ATen has AMX where there is any); for fp32, beyond any usual decode batch; for fp16
/// never, because without AVX512-FP16 ATen's is five times slower (28 against 150 GFLOP/s on one Zen 5 core).
struct LinearHandover {
  int64_t fp32_tokens = 129;
  int64_t bf16_tokens = 33;
  int64_t fp16_tokens = INT64_MAX;
  friend bool operator==(const LinearHandover&, const LinearHandover&) = default;
};

/// Set before the first operator runs; the default is the struct's.
void set_linear_handover(const LinearHandover& handover);
LinearHandover linear_handover();

}  // namespace headway::kernels
