#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <memory>
#include <vector>

#include "headway/layers/linear.h"
#include "headway/spmd/device_mesh.h"

namespace headway {

/// A fused QKV layer, built for one rank, as three projections: parameters q_weight, k_weight, v_weight and, all or
/// none, q_bias, k_bias, v_bias. With a mesh each is cut over axis "x" in whole heads as HeadPartition says; input and
/// output are global: [tokens, hidden] -> [tokens, q + k + v], as the original returns them.
class SpmdQKVParallelLinear : public Linear {
 public:
  /// Takes over the original's weights. Throws ConfigError "TP > 1 is only supported under SPMD." unless the original
  /// was built over one rank, and "QKVParallelLinear should have q, k, and v biases together." for a part of them.
  explicit SpmdQKVParallelLinear(const QKVParallelLinear& original, const DeviceMesh* mesh = nullptr);

  LinearOutput forward(const at::Tensor& input) const override;

 private:
  struct Projection {
    OutputSection section;
    std::shared_ptr<Parameter> weight;
    std::shared_ptr<Parameter> bias;
  };

  Range held(const Projection& projection) const;
  at::Tensor gather(const Projection& projection, const at::Tensor& local) const;
  at::Tensor joined_bias() const;

  const GroupCoordinator* group_;  ///< null without a mesh
  ColumnOptions options_;
  std::vector<Projection> projections_;
};

/// The name that users of vLLM's TPU backend know.
using XlaQKVParallelLinear = SpmdQKVParallelLinear;

}  // namespace headway
