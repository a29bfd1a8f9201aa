#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "headway/base/range.h"
#include "headway/parallel/group_coordinator.h"

namespace headway {

/// The output features of one checkpoint tensor, and which of them each rank of a group holds. Ranges of neighbouring
/// ranks may overlap (a KV head that two ranks share).
struct OutputSection {
  std::string name;  ///< "" for a layer of one section
  int64_t total = 0;
  std::vector<Range> ranges;  ///< by group rank
};

/// The whole section on every rank from each rank's `local` columns [tokens, its range's size]; copies are dropped.
at::Tensor gather_section(const GroupCoordinator& group, const at::Tensor& local, const OutputSection& section);

}  // namespace headway
