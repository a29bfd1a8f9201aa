#pragma once

#include <string>

#include "headway/weights/parameter.h"

namespace headway {

/// A slice of a parameter as it lies in one full tensor: that of its section, or one of all sections fused.
struct SliceSource {
  const TensorSlice* slice;
  std::vector<int64_t> full_shape;  ///< of the tensor that the data comes from
  Range range;                      ///< along slice->dim of that tensor
};

/// Where the parameter's section `section` comes from, in a tensor of its own.
/// Throws ArgumentError if the parameter has no such section.
SliceSource section_source(const Parameter& parameter, const std::string& section);

/// Where the parameter's sections come from in a tensor that holds them all, one behind the other.
std::vector<SliceSource> fused_sources(const Parameter& parameter);

/// Checks that the parameter has memory of its shape, and that its slices lie in it and fill it. Throws ArgumentError
/// naming it.
void check_allotted(const Parameter& parameter);

}  // namespace headway
