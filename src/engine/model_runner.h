#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "engine/request.h"
#include "engine/step_input.h"
#include "headway/models/causal_lm.h"
#include "headway/parallel/parallel_state.h"

namespace headway {

/// Computes steps on all ranks together. Rank 0 calls `step` with what its scheduler chose; the other ranks are in
/// `follow` and learn of each step by one message. Tokens are sampled on rank 0 alone and reach the other ranks in the
/// next step's message, so no two ranks can hold different ones.
class ModelRunner {
 public:
  /// Allots the KV cache; `blocks` must be equal on all ranks.
  ModelRunner(CausalLM& model, const ParallelState& state, int64_t blocks, int64_t block_size);

  /// Rank 0: one token for each sequence of `batch` that samples, in order.
  std::vector<SampledToken> step(const ScheduledBatch& batch);

  /// Rank 0: lets the other ranks return from `follow`.
  void stop();

  /// Other ranks: computes their part of every step until rank 0 stops.
  void follow();

 private:
  void publish(const StepInput& input);
  at::Tensor compute(const StepInput& input);

  CausalLM& model_;
  const GroupCoordinator& world_;
  int64_t block_size_;
  std::vector<KVCacheView> caches_;
};

}  // namespace headway
