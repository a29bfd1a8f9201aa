#include <fmt/format.h>

#include "headway/layers/linear.h"
#include "layers/linear_checks.h"
#include "layers/weight_ops.h"

namespace headway {
namespace {

Range input_columns(const RowShape& shape, const GroupCoordinator& group) {
  if (shape.total_q_heads == 0) return DimPartition::of(shape.in_features, group.size(), group.rank()).range;
  if (shape.in_features % shape.total_q_heads != 0) {
    throw ArgumentError(fmt::format("row-parallel linear: {} input features are not {} whole heads", shape.in_features,
                                    shape.total_q_heads));
  }
  const int64_t head_dim = shape.in_features / shape.total_q_heads;
  const HeadCounts heads{shape.total_q_heads, shape.total_q_heads};
  const Range q_heads = HeadPartition::of(heads, group.size(), group.rank()).q_heads;
  return {q_heads.begin * head_dim, q_heads.end * head_dim};
}

}  // namespace

RowParallelLinear::RowParallelLinear(const GroupCoordinator& group, RowShape shape, RowOptions options)
    : group_(group), shape_(shape), options_(options), columns_(input_columns(shape, group)) {
  if (options.bias && !options.skip_bias_add && !options.reduce_results && group.size() > 1) {
    throw ArgumentError(
        fmt::format("row-parallel linear on {}: without reduce_results a bias would be added on each of {} ranks; use "
                    "skip_bias_add",
                    group.name(), group.size()));
  }
  const std::vector<int64_t> total_shape{shape.out_features, shape.in_features};
  weight_ = parameter("weight", {shape.out_features, columns_.size()}, {{"", total_shape, 1, columns_}});
  weight_->may_be_int8 = true;
  weight_->largest_over_ranks = [&group](const at::Tensor& largest) {
    return group.all_gather(largest.unsqueeze(0), 0).amax(0);
  };
  if (options.bias) {
    bias_ = parameter("bias", {shape.out_features}, {{"", {shape.out_features}, 0, {0, shape.out_features}}});
  }
}

LinearOutput RowParallelLinear::forward(const at::Tensor& input) const {
  at::Tensor output = linear_of(local_input(input), *weight_);  // [tokens, out_features]
  if (options_.reduce_results) output = group_.all_reduce(output);
  if (!bias_) return {output, {}};
  if (!options_.skip_bias_add) return {output.add_(bias_->tensor), {}};
  return {output, options_.return_bias ? bias_->tensor : at::Tensor()};
}

at::Tensor RowParallelLinear::local_input(const at::Tensor& input) const {
  if (options_.input_is_parallel) {
    check_input_features(input, columns_.size(), "row-parallel linear");
    return input;
  }
  check_input_features(input, shape_.in_features, "row-parallel linear");
  return input.narrow(1, columns_.begin, columns_.size());
}

}  // namespace headway
