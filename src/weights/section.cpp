#include "weights/section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "headway/base/error.h"

namespace headway {
namespace {

void check_slice(const Parameter& parameter, const TensorSlice& slice) {
  std::vector<int64_t> expected = slice.total_shape;
  const auto dim = static_cast<size_t>(slice.dim);
  const bool fits = dim < expected.size() && slice.range.begin >= 0 && slice.range.size() >= 0 &&
                    slice.range.end <= expected[dim] && slice.offset >= 0 && dim < parameter.shape.size() &&
                    slice.offset + slice.range.size() <= parameter.shape[dim];
  if (fits) expected[dim] = parameter.shape[dim];
  if (!fits || expected != parameter.shape) {
    throw ArgumentError(fmt::format("parameter {} of shape [{}] cannot hold [{}, {}) of dimension {} of [{}] at {}",
                                    parameter.name, fmt::join(parameter.shape, ", "), slice.range.begin,
                                    slice.range.end, slice.dim, fmt::join(slice.total_shape, ", "), slice.offset));
  }
}

}  // namespace

SliceSource section_source(const Parameter& parameter, const std::string& section) {
  const auto found = std::ranges::find(parameter.slices, section, &TensorSlice::section);
  if (found != parameter.slices.end()) return {&*found, found->total_shape, found->range};
  std::vector<std::string> known;
  for (const TensorSlice& slice : parameter.slices) known.push_back("\"" + slice.section + "\"");
  throw ArgumentError(
      fmt::format("parameter {} has no section \"{}\"; it has {}", parameter.name, section, fmt::join(known, ", ")));
}

std::vector<SliceSource> fused_sources(const Parameter& parameter) {
  const auto dim = static_cast<size_t>(parameter.slices.front().dim);
  std::vector<int64_t> full_shape = parameter.slices.front().total_shape;
  full_shape.at(dim) = 0;
  for (const TensorSlice& slice : parameter.slices) full_shape.at(dim) += slice.total_shape.at(dim);
  std::vector<SliceSource> sources;
  for (const TensorSlice& slice : parameter.slices) {
    sources.push_back(
        {&slice, full_shape, {slice.fused_offset + slice.range.begin, slice.fused_offset + slice.range.end}});
  }
  return sources;
}

void check_allotted(const Parameter& parameter) {
  if (!parameter.tensor.defined()) throw ArgumentError(fmt::format("parameter {} has no memory yet", parameter.name));
  if (parameter.tensor.sizes() != parameter.shape || !parameter.tensor.is_contiguous()) {
    throw ArgumentError(fmt::format("parameter {}: memory of shape [{}] was allotted for shape [{}]", parameter.name,
                                    fmt::join(parameter.tensor.sizes(), ", "), fmt::join(parameter.shape, ", ")));
  }
  int64_t filled = 0;
  for (const TensorSlice& slice : parameter.slices) {
    check_slice(parameter, slice);
    filled += slice.range.size();
  }
  if (parameter.slices.empty() || filled != parameter.shape[static_cast<size_t>(parameter.slices.front().dim)]) {
    throw ArgumentError(
        fmt::format("parameter {} of shape [{}]: its {} slices fill {} of the dimension they are cut on",
                    parameter.name, fmt::join(parameter.shape, ", "), parameter.slices.size(), filled));
  }
}

}  // namespace headway
