#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headway/base/error.h"
#include "headway/weights/weight_loader.h"
#include "weights/section.h"

namespace headway {
namespace {

void copy_slice(Parameter& parameter, const at::Tensor& full, const SliceSource& source) {
  const auto& [slice, full_shape, range] = source;
  if (full.sizes() != full_shape) {
    throw ArgumentError(fmt::format("parameter {}, section \"{}\": shape [{}] is expected, not [{}]", parameter.name,
                                    slice->section, fmt::join(full_shape, ", "), fmt::join(full.sizes(), ", ")));
  }
  parameter.tensor.narrow(slice->dim, slice->offset, range.size())
      .copy_(full.narrow(slice->dim, range.begin, range.size()));
}

}  // namespace

void load_section(Parameter& parameter, const at::Tensor& full, const std::string& section) {
  check_allotted(parameter);
  const bool fused = section.empty() && parameter.slices.size() > 1;
  const auto sources = fused ? fused_sources(parameter) : std::vector{section_source(parameter, section)};
  for (const SliceSource& source : sources) copy_slice(parameter, full, source);
}

}  // namespace headway
