#include "headway/layers/linear.h"
#include "layers/linear_checks.h"
#include "layers/weight_ops.h"

namespace headway {

ReplicatedLinear::ReplicatedLinear(int64_t in_features, int64_t out_features, ReplicatedOptions options)
    : options_(options) {
  const std::vector<int64_t> shape{out_features, in_features};
  weight_ = parameter("weight", shape, {{"", shape, 0, {0, out_features}}});
  weight_->may_be_int8 = true;
  if (options.bias) bias_ = parameter("bias", {out_features}, {{"", {out_features}, 0, {0, out_features}}});
}

LinearOutput ReplicatedLinear::forward(const at::Tensor& input) const {
  check_input_features(input, weight_->shape[1], "replicated linear");
  const at::Tensor bias = bias_ ? bias_->tensor : at::Tensor();
  if (!options_.skip_bias_add) return {linear_of(input, *weight_, bias), {}};
  return {linear_of(input, *weight_), options_.return_bias ? bias : at::Tensor()};
}

}  // namespace headway
