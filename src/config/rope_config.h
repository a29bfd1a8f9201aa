#pragma once

#include <cstdint>

#include "config/config_object.h"
#include "headway/config/model_config.h"

namespace headway {

/// Rotary embedding parameters from `rope_theta` with `rope_scaling`, or from `rope_parameters`. What is stated in
/// more than one place must agree.
RopeConfig read_rope_config(const ConfigObject& root, int64_t max_position_embeddings);

}  // namespace headway
