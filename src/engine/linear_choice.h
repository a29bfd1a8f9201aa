#pragma once

#include "headway/models/causal_lm.h"
#include "headway/parallel/parallel_state.h"

namespace headway {

/// Has all ranks hand linears over to ATen's GEMM from the same number of tokens on, so that ranks that compute the
/// same get the same bits: rank 0 measures with the largest linear that it holds, once in the life of its process, and
/// tells the others. Only bf16 on a CPU is measured; the other dtypes keep their fixed choice. Every rank calls it.
void agree_on_linear_handover(const CausalLM& model, const ParallelState& state);

}  // namespace headway
