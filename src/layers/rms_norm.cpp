#include "headway/layers/rms_norm.h"

#include "kernels/ops.h"

namespace headway {

RMSNorm::RMSNorm(int64_t hidden_size, double eps)
    : eps_(eps), weight_(parameter("weight", {hidden_size}, {{"", {hidden_size}, 0, {0, hidden_size}}})) {}

at::Tensor RMSNorm::forward(const at::Tensor& x) const {
  return kernels::rms_norm(x, weight_->tensor, eps_);
}

at::Tensor RMSNorm::forward(const at::Tensor& x, at::Tensor& residual) const {
  return kernels::add_rms_norm(x, residual, weight_->tensor, eps_);
}

}  // namespace headway
