#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "config/config_object.h"

namespace headway {

/// One place where a value may be stated.
struct Spelling {
  const ConfigObject& object;
  std::string_view key;
};

/// A value that several keys may state: those that do must agree. `read(object, key)` gives it, or nothing where the
/// key is absent. Throws ConfigError naming both keys and both values where two differ.
template <typename Read>
auto agreed(const std::vector<Spelling>& spellings, Read read) {
  using Value = decltype(read(spellings.front().object, spellings.front().key));
  Value value;
  const Spelling* stated_by = nullptr;
  for (const Spelling& spelling : spellings) {
    const Value candidate = read(spelling.object, spelling.key);
    if (!candidate) continue;
    if (stated_by != nullptr && *candidate != *value) {
      const auto [object, key] = *stated_by;
      object.fail(object.name_of(key) + " is " + shown(*object.find(key)) + " but " +
                  spelling.object.name_of(spelling.key) + " is " + shown(*spelling.object.find(spelling.key)));
    }
    if (stated_by == nullptr) {
      value = candidate;
      stated_by = &spelling;
    }
  }
  return value;
}

}  // namespace headway
