#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "headway/base/range.h"

namespace headway {

/// A JSON object of a config file that is read key by key, each with its type and limits checked. Errors name the file
/// and the key. A key whose value is null counts as absent, unless said otherwise.
class ConfigObject {
 public:
  /// `value` must be an object; `prefix` stands before its keys in errors, e.g. "rope_scaling.".
  ConfigObject(const Json& value, std::string source, std::string prefix = "");

  static constexpr size_t kMaxFileBytes = size_t{1} << 20;

  bool states(std::string_view key) const { return find(key) != nullptr; }
  bool is_null(std::string_view key) const;  ///< the key is there, and null
  const Json* find(std::string_view key) const;

  std::optional<int64_t> integer(std::string_view key, Range limits) const;  ///< `limits.end` is excluded
  int64_t required_integer(std::string_view key, Range limits) const;
  std::optional<double> number(std::string_view key, double least, double most) const;
  double required_number(std::string_view key, double least, double most) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  std::optional<ConfigObject> object(std::string_view key) const;

  std::string name_of(std::string_view key) const;  ///< with the prefix
  const Json& json() const { return *value_; }
  const std::string& source() const { return source_; }

  /// Throws ConfigError "<source>: <message>".
  [[noreturn]] void fail(std::string_view message) const;
  /// Throws ConfigError "<source>: <key> is <value>; <expected> is expected".
  [[noreturn]] void fail_value(std::string_view key, std::string_view expected) const;

 private:
  [[noreturn]] void fail_absent(std::string_view key) const;

  const Json* value_;
  std::string source_;
  std::string prefix_;
};

/// A JSON value in an error text, cut where it is long.
std::string shown(const Json& value);

}  // namespace headway
