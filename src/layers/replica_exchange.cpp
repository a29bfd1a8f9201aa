#include "headway/layers/replica_exchange.h"

#include <fmt/format.h>

#include <numeric>

#include "headway/base/error.h"

namespace headway {

ReplicaExchange::ReplicaExchange(const ParallelState& state)
    : attn_dp_(state.attn_dp()), lm_head_tp_(state.lm_head_tp()) {}

void ReplicaExchange::check(const std::vector<int64_t>& tokens) const {
  if (static_cast<int>(tokens.size()) == attn_dp_.size()) return;
  throw ArgumentError(fmt::format("token counts of {} replicas on global rank {}, but attn_dp has {}", tokens.size(),
                                  attn_dp_.global_rank().value, attn_dp_.size()));
}

Range ReplicaExchange::own_rows(const std::vector<int64_t>& tokens) const {
  check(tokens);
  const auto own = tokens.begin() + attn_dp_.rank().value;
  const int64_t begin = std::accumulate(tokens.begin(), own, int64_t{0});
  return {begin, begin + *own};
}

at::Tensor ReplicaExchange::gather(const at::Tensor& own, const std::vector<int64_t>& tokens) const {
  check(tokens);
  return attn_dp_.all_gather(own, 0, tokens);
}

at::Tensor ReplicaExchange::sum_to_own(const at::Tensor& contribution, const std::vector<int64_t>& tokens) const {
  check(tokens);
  return lm_head_tp_.all_reduce(attn_dp_.reduce_scatter(contribution, 0, tokens));
}

}  // namespace headway
