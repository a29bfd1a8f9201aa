#include "headway/spmd/spmd_qkv_linear.h"

#include <ATen/ops/cat.h>

#include "headway/base/error.h"
#include "headway/weights/weight_loader.h"
#include "kernels/ops.h"
#include "layers/linear_checks.h"
#include "spmd/adopt_weights.h"

namespace headway {
namespace {

void check_original(const QKVParallelLinear& original) {
  require_whole(original.group());
  if (!original.options().bias) return;
  if (original.own_parameter("bias").slices.size() != original.sections().size()) {
    throw ConfigError("QKVParallelLinear should have q, k, and v biases together.");
  }
}

/// The section of `original` at `index`, cut over `group` in whole heads; whole without a group.
OutputSection cut_section(const QKVParallelLinear& original, size_t index, const GroupCoordinator* group) {
  const OutputSection& whole = original.sections()[index];
  if (group == nullptr) return whole;
  return QKVParallelLinear(*group, original.shape(), original.options()).sections()[index];
}

}  // namespace

SpmdQKVParallelLinear::SpmdQKVParallelLinear(const QKVParallelLinear& original, const DeviceMesh* mesh)
    : group_(mesh == nullptr ? nullptr : &mesh->group({"x"})), options_(original.options()) {
  check_original(original);
  const Parameter& weight = original.own_parameter("weight");
  for (size_t i = 0; i < original.sections().size(); ++i) {
    Projection projection{cut_section(original, i, group_), nullptr, nullptr};
    const std::string& name = projection.section.name;
    const Range rows = held(projection);
    const int64_t in_features = original.in_features();
    projection.weight = parameter(name + "_weight", {rows.size(), in_features},
                                  {{"", {projection.section.total, in_features}, 0, rows}});
    if (options_.bias) {
      projection.bias = parameter(name + "_bias", {rows.size()}, {{"", {projection.section.total}, 0, rows}});
    }
    projections_.push_back(std::move(projection));
  }
  allocate_parameters(*this, weight.tensor.scalar_type(), weight.tensor.device());
  for (size_t i = 0; i < projections_.size(); ++i) {
    load_section(*projections_[i].weight, section_of(weight, weight.slices[i]));
    if (!options_.bias) continue;
    const Parameter& bias = original.own_parameter("bias");
    load_section(*projections_[i].bias, section_of(bias, bias.slices[i]));
  }
}

Range SpmdQKVParallelLinear::held(const Projection& projection) const {
  return projection.section.ranges[group_ == nullptr ? 0 : group_->rank().value];
}

at::Tensor SpmdQKVParallelLinear::gather(const Projection& projection, const at::Tensor& local) const {
  return group_ == nullptr ? local : gather_section(*group_, local, projection.section);
}

LinearOutput SpmdQKVParallelLinear::forward(const at::Tensor& input) const {
  check_input_features(input, projections_.front().weight->shape[1], "SPMD QKV linear");
  std::vector<at::Tensor> outputs;
  for (const Projection& projection : projections_) {
    const bool add_bias = projection.bias && !options_.skip_bias_add;
    const at::Tensor bias = add_bias ? projection.bias->tensor : at::Tensor();
    outputs.push_back(gather(projection, kernels::linear(input, projection.weight->tensor, bias)));
  }
  const bool hand_out_bias = options_.bias && options_.skip_bias_add && options_.return_bias;
  return {at::cat(outputs, 1), hand_out_bias ? joined_bias() : at::Tensor()};
}

at::Tensor SpmdQKVParallelLinear::joined_bias() const {
  std::vector<at::Tensor> biases;
  for (const Projection& projection : projections_) {
    biases.push_back(gather(projection, projection.bias->tensor.unsqueeze(0)).squeeze(0));
  }
  return at::cat(biases);
}

}  // namespace headway
