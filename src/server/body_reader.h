#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"

namespace headway {

/// Reads the fields of a JSON object by name and type, and refuses the rest by name, so that nothing is taken and then
/// ignored. A field that is null counts as absent. Errors are ApiErrors that name the field.
class BodyReader {
 public:
  /// `where` comes before the names of fields in errors, such as "messages[2]."; the object must outlive the reader.
  explicit BodyReader(const Json& object, std::string where = "");

  const Json* find(const std::string& name);
  const Json& require(const std::string& name);
  std::optional<double> number(const std::string& name);
  std::optional<int64_t> integer(const std::string& name);
  std::optional<bool> boolean(const std::string& name);
  std::optional<std::string> string(const std::string& name);

  /// A string, or a list of strings.
  std::vector<std::string> strings(const std::string& name);

  /// Overwrites `value` if the field is there.
  void read(const std::string& name, double& value);
  void read(const std::string& name, int64_t& value);
  void read(const std::string& name, bool& value);

  /// Takes a field that means nothing here if it has this value, else refuses it.
  void accept_only(const std::string& name, const Json& value);

  /// Throws naming the first field that nobody has asked for.
  void refuse_others() const;

  std::string path(const std::string& name) const { return where_ + name; }

 private:
  [[noreturn]] void wrong_type(const std::string& name, const Json& value, const char* expected) const;

  const Json& object_;
  std::string where_;
  std::set<std::string> known_;
};

/// The JSON value of a request's body. Throws ApiError 400 for what is not JSON.
Json parse_body(std::string_view text);

}  // namespace headway
