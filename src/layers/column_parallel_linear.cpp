#include <ATen/ops/cat.h>

#include <numeric>

#include "headway/layers/linear.h"
#include "layers/linear_checks.h"
#include "layers/weight_ops.h"

namespace headway {
namespace {

std::vector<Range> even_cuts(int64_t total, int group_size) {
  std::vector<Range> cuts;
  for (int r = 0; r < group_size; ++r) cuts.push_back(DimPartition::of(total, group_size, {r}).range);
  return cuts;
}

std::vector<OutputSection> merged_sections(const std::vector<MergedColumnParallelLinear::Output>& outputs,
                                           int group_size) {
  std::vector<OutputSection> sections;
  for (const auto& [name, size] : outputs) sections.push_back({name, size, even_cuts(size, group_size)});
  return sections;
}

Range scaled(Range heads, int64_t head_dim) {
  return {heads.begin * head_dim, heads.end * head_dim};
}

std::vector<OutputSection> qkv_sections(const QKVShape& shape, int group_size) {
  const auto [total_q, total_kv] = shape.heads;
  OutputSection q{"q", total_q * shape.head_dim, {}};
  OutputSection k{"k", total_kv * shape.head_dim, {}};
  for (int r = 0; r < group_size; ++r) {
    const auto heads = HeadPartition::of(shape.heads, group_size, {r});
    q.ranges.push_back(scaled(heads.q_heads, shape.head_dim));
    k.ranges.push_back(scaled(heads.kv_heads, shape.head_dim));
  }
  OutputSection v = k;
  v.name = "v";
  return {q, k, v};
}

/// The slices that fill a parameter of all sections' local parts, one behind the other. `row_shape` is the shape of a
/// checkpoint tensor without its first dimension.
std::vector<TensorSlice> section_slices(const std::vector<OutputSection>& sections, GroupRank rank,
                                        const std::vector<int64_t>& row_shape) {
  std::vector<TensorSlice> slices;
  int64_t offset = 0;
  int64_t fused_offset = 0;
  for (const OutputSection& section : sections) {
    const Range range = section.ranges[rank.value];
    std::vector<int64_t> shape{section.total};
    shape.insert(shape.end(), row_shape.begin(), row_shape.end());
    slices.push_back({section.name, shape, 0, range, offset, fused_offset});
    offset += range.size();
    fused_offset += section.total;
  }
  return slices;
}

int64_t local_rows(const std::vector<OutputSection>& sections, GroupRank rank) {
  return std::accumulate(sections.begin(), sections.end(), int64_t{0}, [rank](int64_t rows, const auto& section) {
    return rows + section.ranges[rank.value].size();
  });
}

}  // namespace

ColumnParallelLinear::ColumnParallelLinear(const GroupCoordinator& group, int64_t in_features, int64_t out_features,
                                           ColumnOptions options)
    : ColumnParallelLinear(group, in_features, {{"", out_features, even_cuts(out_features, group.size())}}, options) {}

ColumnParallelLinear::ColumnParallelLinear(const GroupCoordinator& group, int64_t in_features,
                                           std::vector<OutputSection> sections, ColumnOptions options)
    : group_(group), in_features_(in_features), sections_(std::move(sections)), options_(options) {
  const int64_t rows = local_rows(sections_, group.rank());
  weight_ = parameter("weight", {rows, in_features}, section_slices(sections_, group.rank(), {in_features}));
  weight_->may_be_int8 = true;
  if (options.bias) bias_ = parameter("bias", {rows}, section_slices(sections_, group.rank(), {}));
}

LinearOutput ColumnParallelLinear::forward(const at::Tensor& input) const {
  check_input_features(input, in_features_, "column-parallel linear");
  const at::Tensor bias = bias_ ? bias_->tensor : at::Tensor();
  const at::Tensor local = linear_of(input, *weight_, options_.skip_bias_add ? at::Tensor() : bias);
  const bool hand_out_bias = options_.skip_bias_add && options_.return_bias;
  if (!options_.gather_output) return {local, hand_out_bias ? bias : at::Tensor()};
  return {gather_sections(local),
          hand_out_bias && bias.defined() ? gather_sections(bias.unsqueeze(0)).squeeze(0) : at::Tensor()};
}

at::Tensor ColumnParallelLinear::gather_sections(const at::Tensor& local) const {
  std::vector<at::Tensor> gathered;
  int64_t offset = 0;
  for (const OutputSection& section : sections_) {
    const int64_t held = section.ranges[group_.rank().value].size();
    gathered.push_back(gather_section(group_, local.narrow(1, offset, held), section));
    offset += held;
  }
  return gathered.size() == 1 ? gathered.front() : at::cat(gathered, 1);
}

MergedColumnParallelLinear::MergedColumnParallelLinear(const GroupCoordinator& group, int64_t in_features,
                                                       const std::vector<Output>& outputs, ColumnOptions options)
    : ColumnParallelLinear(group, in_features, merged_sections(outputs, group.size()), options) {}

QKVParallelLinear::QKVParallelLinear(const GroupCoordinator& group, QKVShape shape, ColumnOptions options)
    : ColumnParallelLinear(group, shape.hidden_size, qkv_sections(shape, group.size()), options),
      shape_(shape),
      heads_(HeadPartition::of(shape.heads, group.size(), group.rank())) {}

}  // namespace headway
