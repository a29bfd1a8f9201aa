#pragma once

// The Jinja engine takes its JSON type from a header of this name.
#include <nlohmann/json.hpp>

using common_json = nlohmann::ordered_json;
