#pragma once

#include <ATen/core/Tensor.h>

#include "headway/layers/module.h"

namespace headway {

/// The rows of one section in a parameter that holds all sections whole.
at::Tensor section_of(const Parameter& whole, const TensorSlice& section);

/// Gives `sharded` memory like that of `original` and fills its parameters from the original's, which are whole and
/// have the same names and sections.
void adopt_weights(Module& sharded, const Module& original);

}  // namespace headway
