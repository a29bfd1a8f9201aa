#include "cli/bench_limits.h"

#include <algorithm>

namespace headway {
namespace {

double arithmetic_limit(const DecodeWork& work, const MachineReach& reach) {
  return reach.linear_ops_per_s / work.ops_per_token;
}

double rank_bytes(const RankBytes& rank, const DecodeWork& work) {
  return static_cast<double>(rank.weights) +
         static_cast<double>(work.sequences) * work.mean_context * static_cast<double>(rank.kv_per_token);
}

}  // namespace

double DecodeWork::bytes() const {
  double sum = 0;
  for (const RankBytes& rank : ranks) sum += rank_bytes(rank, *this);
  return sum;
}

double DecodeWork::largest_rank_bytes() const {
  double largest = 0;
  for (const RankBytes& rank : ranks) largest = std::max(largest, rank_bytes(rank, *this));
  return largest;
}

double decode_limit(const DecodeWork& work, const MachineReach& reach) {
  const double memory_limit = static_cast<double>(work.sequences) * reach.read_bytes_per_s / work.bytes();
  return std::min(memory_limit, arithmetic_limit(work, reach));
}

double decode_limit_of_largest_rank(const DecodeWork& work, const MachineReach& reach) {
  const double share = reach.read_bytes_per_s / static_cast<double>(work.ranks.size());
  const double memory_limit = static_cast<double>(work.sequences) * share / work.largest_rank_bytes();
  return std::min(memory_limit, arithmetic_limit(work, reach));
}

double prefill_limit(int64_t tokens, const MachineReach& reach) {
  return static_cast<double>(tokens) / reach.prefill_linears_s;
}

}  // namespace headway
