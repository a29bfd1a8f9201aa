#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/config_object.h"

namespace headway {

/// The sliding window of every layer, from use_sliding_window, sliding_window, max_window_layers and layer_types.
std::vector<std::optional<int64_t>> read_sliding_windows(const ConfigObject& root, int64_t num_layers);

}  // namespace headway
