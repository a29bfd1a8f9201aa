#pragma once

#include "config/config_object.h"
#include "headway/config/model_config.h"

namespace headway {

/// What Headway reads of a config.json, without what generation_config.json adds. Throws ConfigError.
ModelConfig read_model_config(const ConfigObject& root);

}  // namespace headway
