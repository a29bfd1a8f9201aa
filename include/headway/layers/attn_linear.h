#pragma once

#include "headway/layers/linear.h"
#include "headway/parallel/parallel_state.h"

// The linear layers of an attention block: the general ones, bound to the attention group `lm_head_tp`.
namespace headway {

/// QKVParallelLinear over `lm_head_tp`: each rank of an attention replica has its own whole heads.
class AttnQKVParallelLinear : public QKVParallelLinear {
 public:
  AttnQKVParallelLinear(const ParallelState& state, QKVShape shape, ColumnOptions options = {})
      : QKVParallelLinear(state.lm_head_tp(), shape, options) {}
};

/// ColumnParallelLinear over `lm_head_tp`.
class AttnColumnParallelLinear : public ColumnParallelLinear {
 public:
  AttnColumnParallelLinear(const ParallelState& state, int64_t in_features, int64_t out_features,
                           ColumnOptions options = {})
      : ColumnParallelLinear(state.lm_head_tp(), in_features, out_features, options) {}
};

/// RowParallelLinear over `lm_head_tp`: partial sums are added within an attention replica.
class AttnRowParallelLinear : public RowParallelLinear {
 public:
  AttnRowParallelLinear(const ParallelState& state, RowShape shape, RowOptions options = {})
      : RowParallelLinear(state.lm_head_tp(), shape, options) {}
};

}  // namespace headway
