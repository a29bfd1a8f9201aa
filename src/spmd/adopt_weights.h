#pragma once

#include <ATen/core/Tensor.h>

#include "headway/layers/module.h"
#include "headway/parallel/group_coordinator.h"

namespace headway {

/// The rows of one section in a parameter that holds all sections whole.
at::Tensor section_of(const Parameter& whole, const TensorSlice& section);

/// Throws ConfigError "TP > 1 is only supported under SPMD." unless a layer over `group` holds its weights whole.
void require_whole(const GroupCoordinator& group);

/// Gives `sharded` memory like that of `original` and fills its parameters from the original's, which are whole and
/// have the same names and sections.
void adopt_weights(Module& sharded, const Module& original);

}  // namespace headway
