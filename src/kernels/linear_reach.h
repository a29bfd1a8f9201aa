#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/linear_way.h"

namespace headway::kernels {

/// How fast the linears of a model are when nothing else runs: the limit of a prefill.
class LinearReach {
 public:
  struct Use {
    at::Tensor weight;
    int64_t tokens = 0;
  };

  /// Finds for each shape which of Headway's kernel and ATen's GEMM is faster on this machine.
  explicit LinearReach(std::vector<Use> uses);

  /// Seconds that one pass over all uses takes, each in its faster way.
  double measure() const;

  /// Multiplications and additions of one pass.
  double operations() const;

 private:
  struct Step {
    at::Tensor input;
    at::Tensor weight;
    LinearWay way = LinearWay::own;
  };
  std::vector<Step> steps_;
};

}  // namespace headway::kernels
