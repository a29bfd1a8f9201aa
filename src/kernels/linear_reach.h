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
    at::Tensor scales;  ///< of a weight in int8
    int64_t tokens = 0;
    at::ScalarType dtype = at::kFloat;  ///< of the inputs
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
    at::Tensor scales;
    LinearWay way = LinearWay::own;

    void run() const;
    double best_seconds(LinearWay forced_way) const;
  };
  std::vector<Step> steps_;
};

}  // namespace headway::kernels
