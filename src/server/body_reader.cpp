#include "server/body_reader.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "server/api_error.h"

namespace headway {

Json parse_body(std::string_view text) {
  try {
    return parse_json(text, "the body");
  } catch (const CheckpointError& error) {
    throw ApiError(400, "invalid_json", error.what());
  }
}

BodyReader::BodyReader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (object.is_object()) return;
  const std::string name = where_.empty() ? "the body" : where_.substr(0, where_.size() - 1);
  throw invalid_request(name, fmt::format("{} is {}; it must be an object", name, object.type_name()));
}

const Json* BodyReader::find(const std::string& name) {
  known_.insert(name);
  const auto field = object_.find(name);
  return field == object_.end() || field->is_null() ? nullptr : &*field;
}

const Json& BodyReader::require(const std::string& name) {
  const Json* value = find(name);
  if (value == nullptr) throw invalid_request(path(name), fmt::format("{} is missing", path(name)));
  return *value;
}

void BodyReader::wrong_type(const std::string& name, const Json& value, const char* expected) const {
  throw invalid_request(path(name), fmt::format("{} is {} of type {}; it must be {}", path(name),
                                                dump_json(value).substr(0, 80), value.type_name(), expected));
}

std::optional<double> BodyReader::number(const std::string& name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) wrong_type(name, *value, "a number");
  return value->get<double>();
}

std::optional<int64_t> BodyReader::integer(const std::string& name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const bool too_large = value->is_number_unsigned() && value->get<uint64_t>() > std::numeric_limits<int64_t>::max();
  if (!value->is_number_integer() || too_large) wrong_type(name, *value, "a whole number of at most 63 bits");
  return value->get<int64_t>();
}

std::optional<bool> BodyReader::boolean(const std::string& name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) wrong_type(name, *value, "true or false");
  return value->get<bool>();
}

std::optional<std::string> BodyReader::string(const std::string& name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) wrong_type(name, *value, "a string");
  return value->get<std::string>();
}

std::vector<std::string> BodyReader::strings(const std::string& name) {
  const Json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) wrong_type(name, *value, "a string or a list of strings");
  std::vector<std::string> texts;
  for (const Json& text : *value) {
    if (!text.is_string()) wrong_type(name, text, "a string or a list of strings");
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

void BodyReader::read(const std::string& name, double& value) {
  value = number(name).value_or(value);
}

void BodyReader::read(const std::string& name, int64_t& value) {
  value = integer(name).value_or(value);
}

void BodyReader::read(const std::string& name, bool& value) {
  value = boolean(name).value_or(value);
}

void BodyReader::accept_only(const std::string& name, const Json& value) {
  const Json* found = find(name);
  if (found == nullptr || *found == value) return;
  throw ApiError(
      400, "unsupported_parameter",
      fmt::format("{} is served only as {}, not as {}", path(name), dump_json(value), dump_json(*found).substr(0, 80)),
      path(name));
}

void BodyReader::refuse_others() const {
  for (const auto& [name, value] : object_.items()) {
    if (known_.contains(name) || value.is_null()) continue;
    throw ApiError(400, "unsupported_parameter", fmt::format("{} is not a parameter that is served here", path(name)),
                   path(name));
  }
}

}  // namespace headway
