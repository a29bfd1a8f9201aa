#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/json.h"

namespace headway {

/// The `weight_map` of a model.safetensors.index.json: tensor name -> file name relative to the folder. Throws
/// CheckpointError that begins with `source` if it is not such a map, or if a name would leave the folder.
std::map<std::string, std::string> parse_weight_map(const Json& index, std::string_view source);

}  // namespace headway
