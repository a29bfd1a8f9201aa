#pragma once

#include <string>

#include "base/json.h"

namespace headway {

/// A name from a file in an error text: in quotes, control characters escaped, cut where it is long.
inline std::string in_quotes(const std::string& name) {
  constexpr size_t kLongest = 200;
  return dump_json(name.size() <= kLongest ? name : name.substr(0, kLongest) + "...");
}

}  // namespace headway
