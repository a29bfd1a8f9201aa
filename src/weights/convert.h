#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>

#include "headway/base/dtype.h"

namespace headway {

/// Writes `count` elements to `target` (aligned) from `source` (of any alignment), in another dtype or the same.
/// Values are rounded to nearest even, as tensors' own conversion does.
using Converter = void (*)(const std::byte* source, std::byte* target, int64_t count);

/// The converter between two of F32, F16 and BF16; null for any other dtype.
Converter converter_between(DType from, c10::ScalarType to);

}  // namespace headway
