#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "headway/base/range.h"
#include "headway/parallel/parallel_state.h"

namespace headway {

/// Moves tokens between attention replicas that own different ones and layers that take all of them. `tokens` says how
/// many each replica has, which may be none; the rows of all tokens are in the order of the replicas.
class ReplicaExchange {
 public:
  explicit ReplicaExchange(const ParallelState& state);

  /// Where this rank's replica has its rows among all.
  Range own_rows(const std::vector<int64_t>& tokens) const;

  /// [own tokens, hidden] -> [all tokens, hidden].
  at::Tensor gather(const at::Tensor& own, const std::vector<int64_t>& tokens) const;

  /// The sum over the TP group of what its ranks contribute to all tokens, [all tokens, hidden] -> [own tokens,
  /// hidden]: each contribution is added once, over the replicas first and then within the attention group.
  at::Tensor sum_to_own(const at::Tensor& contribution, const std::vector<int64_t>& tokens) const;

 private:
  void check(const std::vector<int64_t>& tokens) const;

  const GroupCoordinator& attn_dp_;
  const GroupCoordinator& lm_head_tp_;
};

}  // namespace headway
