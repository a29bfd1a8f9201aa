#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace headway::kernels {

/// From how many tokens on a linear on the CPU goes to ATen's GEMM, by element type. Below, Headway's own kernel
/// streams the weights once and gives every token the same bits whatever else is in the batch. Ranks that must agree
/// bit by bit need the same values: one decides and tells the others.
///
/// The defaults are fixed, so that ranks agree on them without a word: for bf16 from the batch on that arithmetic
/// bounds, because ATen has matrix units where there are any and blocks better for VDPBF16PS; for fp32 and fp16 never,
/// because ATen's are slower (on one Zen 5 core at 512 tokens 107 against 160 and 28 against 190 GFLOP/s) and a result
/// that does not depend on the batch is worth more than a little speed elsewhere.
struct LinearHandover {
  int64_t fp32_tokens = INT64_MAX;
  int64_t bf16_tokens = 33;
  int64_t fp16_tokens = INT64_MAX;
  friend bool operator==(const LinearHandover&, const LinearHandover&) = default;
};

/// Set before the first operator runs; the default is the struct's.
void set_linear_handover(const LinearHandover& handover);
LinearHandover linear_handover();

/// Times both ways on this machine with one weight of a model and returns linear_handover() with the field of its
/// dtype replaced: the least of 16, 32, ..., 256 tokens from which ATen is faster at all of them, or INT64_MAX. Takes
/// some tens of milliseconds; what it finds varies with the machine's load, so it is for one rank to call.
LinearHandover measure_linear_handover(const at::Tensor& weight);

}  // namespace headway::kernels
