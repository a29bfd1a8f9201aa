#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace headway {

/// A value in a JSON file that knows its place, so that errors can name it. Views the JSON it was made from.
class JsonField {
 public:
  JsonField(const Json& value, std::string file, std::string place = {})
      : value_(&value), file_(std::move(file)), place_(std::move(place)) {}

  /// The value under `key`; nothing if it is absent or null. This must be an object.
  std::optional<JsonField> find(std::string_view key) const;
  JsonField at(std::string_view key) const;
  JsonField at(size_t index) const;
  size_t size() const;  ///< of an array

  const Json& json() const { return *value_; }
  const Json& object() const;
  const std::string& string() const;
  bool boolean() const;

  /// Of an optional entry of an object.
  bool boolean_or(std::string_view key, bool otherwise) const;
  std::string string_or(std::string_view key, std::string_view otherwise) const;

  /// Throws CheckpointError naming this place.
  [[noreturn]] void fail(std::string_view problem) const;

 private:
  const Json* value_;
  std::string file_;
  std::string place_;  // as in "model.merges[3]"; empty for the whole file
};

}  // namespace headway
