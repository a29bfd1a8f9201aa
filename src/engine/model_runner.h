#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "engine/finite_watch.h"
#include "engine/request.h"
#include "engine/row_sampler.h"
#include "engine/step_input.h"
#include "headway/models/causal_lm.h"
#include "headway/parallel/message_queue.h"
#include "headway/parallel/parallel_state.h"

namespace headway {

/// Computes steps on all ranks together. Rank 0 calls `step` with what its scheduler chose; the other ranks are in
/// `follow` and learn of each step by one message. Tokens are sampled on rank 0 alone and reach the other ranks in the
/// next step's message, so no two ranks can hold different ones. They wait for work in a queue, not in a collective, so
/// no time limit ends the wait.
class ModelRunner {
 public:
  /// Allots the KV cache; `blocks` must be equal on all ranks.
  ModelRunner(CausalLM& model, const ParallelState& state, int64_t blocks, int64_t block_size);

  /// Rank 0: the tokens, and what else was asked for, of the sequences of `batch`.
  StepResults step(const ScheduledBatch& batch);

  /// Rank 0: lets the other ranks return from `follow`.
  void stop();

  /// Other ranks: computes their part of every step until rank 0 stops.
  void follow();

 private:
  using LogitsConsumer = std::function<void(const at::Tensor& logits)>;

  /// Hands the rows of logits that are asked for to `consume`, in order, some at a time: [rows, vocab].
  void compute(const StepInput& input, const LogitsConsumer& consume);

  /// Says in the errors of sequences without a next token where their values stopped to be numbers, as far as this
  /// rank's replica computes them.
  void explain_errors(const ScheduledBatch& batch, StepResults& results) const;

  /// This rank's rows whose logits are asked for, of those that `forward` computed; where replicas own sequences, the
  /// rows of all of them, as the LM head takes them.
  at::Tensor rows_for_logits(const StepInput& input, const at::Tensor& hidden) const;

  CausalLM& model_;
  const GroupCoordinator& attn_dp_;
  int64_t replica_;  ///< the one that this rank belongs to; 0 where all compute the same
  int64_t block_size_;
  std::vector<KVCacheView> caches_;
  std::unique_ptr<FiniteWatch> finite_;  ///< null unless asked for
  std::unique_ptr<MessageQueue> steps_;  ///< from rank 0 to the others
};

}  // namespace headway
