#pragma once

#include <cstdint>

namespace headway::kernels {

/// From how many tokens on a linear on the CPU goes to ATen's GEMM, by element type. Below, Headway's own kernel
/// streams the weights once and gives every token the same bits whatever else is in the batch. Ranks that must agree
/// bit by bit need the same values: one decides and tells the others.
struct LinearHandover {
  int64_t fp32_tokens = 17;
  int64_t bf16_tokens = 33;
  int64_t fp16_tokens = 33;
  friend bool operator==(const LinearHandover&, const LinearHandover&) = default;
};

/// Set before the first operator runs; the default is the struct's.
void set_linear_handover(const LinearHandover& handover);
LinearHandover linear_handover();

}  // namespace headway::kernels
