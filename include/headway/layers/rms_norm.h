#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "headway/layers/module.h"

namespace headway {

/// x / sqrt(mean(x^2) + eps) * weight, replicated on every rank (https://arxiv.org/abs/1910.07467).
class RMSNorm : public Module {
 public:
  RMSNorm(int64_t hidden_size, double eps);

  at::Tensor forward(const at::Tensor& x) const;

  /// residual += x, then the norm of residual.
  at::Tensor forward(const at::Tensor& x, at::Tensor& residual) const;

 private:
  double eps_;
  std::shared_ptr<Parameter> weight_;
};

}  // namespace headway
