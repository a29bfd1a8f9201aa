#pragma once

#include <cstdint>
#include <vector>

namespace headway {

/// What one rank reads for a decoding step, whatever the batch, and for each token of context.
struct RankBytes {
  int64_t weights = 0;
  int64_t kv_per_token = 0;
};

/// What the machine gave all ranks together, measured at one time.
struct MachineReach {
  double read_bytes_per_s = 0;   ///< all ranks' threads reading at once
  double linear_ops_per_s = 0;   ///< the model's linears at the prefill's number of tokens
  double prefill_linears_s = 0;  ///< all linears of a whole prefill on the slowest rank
};

/// The work of one decoding step over all ranks.
struct DecodeWork {
  std::vector<RankBytes> ranks;
  int64_t sequences = 0;
  double mean_context = 0;   ///< tokens that a sequence attends to, over the steps
  double ops_per_token = 0;  ///< of the linears, over all ranks

  double bytes() const;               ///< over all ranks
  double largest_rank_bytes() const;  ///< on the rank that reads the most
};

/// Tokens per second if a step did nothing but read its weights and KV cache at the bus's speed, or nothing but its
/// linears' arithmetic: the smaller of the two.
double decode_limit(const DecodeWork& work, const MachineReach& reach);

/// The same where every step waits for the rank that reads the most, each rank having an equal share of the bus.
double decode_limit_of_largest_rank(const DecodeWork& work, const MachineReach& reach);

/// Tokens per second if a prefill of so many tokens did nothing but its linears.
double prefill_limit(int64_t tokens, const MachineReach& reach);

}  // namespace headway
