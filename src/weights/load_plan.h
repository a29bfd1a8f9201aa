#pragma once

#include <string>
#include <vector>

#include "headway/weights/checkpoint_index.h"
#include "headway/weights/weight_loader.h"
#include "weights/convert.h"
#include "weights/section.h"

namespace headway {

/// One part of a parameter and the checkpoint tensor that it is cut from.
struct PlannedCopy {
  const TensorLocation* location;
  Parameter* parameter;
  SliceSource source;
  Converter convert;

  int64_t bytes() const;  ///< that are read, in the file's dtype
};

/// All copies that fill the parameters of this rank, in the order in which their bytes lie in the files.
struct LoadPlan {
  std::vector<PlannedCopy> copies;
  std::vector<std::string> unused;  ///< checkpoint names that need no place in the model
};

/// Finds the data of every parameter and checks shapes and dtypes. Throws CheckpointError that lists everything that
/// is missing, unexpected or does not fit.
LoadPlan plan_load(const CheckpointIndex& index, const CheckpointNames& names,
                   const std::vector<NamedParameter>& parameters);

}  // namespace headway
