#pragma once

#include <optional>

#include "cli/bench_limits.h"
#include "cli/bench_run.h"
#include "headway/models/causal_lm.h"
#include "headway/parallel/parallel_state.h"
#include "kernels/linear_reach.h"
#include "kernels/read_bandwidth.h"

namespace headway {

/// The doubles of every rank, in order; every rank calls it and gets them.
std::vector<double> gather_numbers(double own, const ParallelState& state);

/// The weights that a decoding step reads on this rank, and its KV cache.
RankBytes rank_bytes(const CausalLM& model);

/// Measures what this machine could give the model, on all ranks at a time. On the CPU only.
class BenchMachine {
 public:
  /// Takes memory to read; the ranks' threads must be set up.
  BenchMachine(const CausalLM& model, const ParallelState& state, const BenchWork& work, int64_t step_tokens);

  /// All ranks call it together and get the same.
  MachineReach measure();

  /// Operations of the linears for one decoded token, over all ranks.
  double ops_per_token() const { return ops_per_token_; }

 private:
  double read_bytes_per_s();
  double slowest(double seconds) const;
  double sum(double value) const;

  const ParallelState& state_;
  kernels::ReadBandwidth reading_;
  kernels::LinearReach layers_;  ///< one pass at a step's tokens
  kernels::LinearReach lm_head_;
  double passes_;  ///< of the layers in a prefill
  double layer_ops_;
  double ops_per_token_;
};

}  // namespace headway
