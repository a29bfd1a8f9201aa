#pragma once

#include <c10/core/ScalarType.h>

#include "headway/base/dtype.h"

namespace headway {

/// torch's name of a checkpoint dtype. Throws ArgumentError for one that torch has no type for.
c10::ScalarType torch_dtype(DType dtype);

}  // namespace headway
