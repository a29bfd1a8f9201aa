#include "config/config_object.h"

#include <fmt/format.h>

#include <cmath>

#include "headway/base/error.h"

namespace headway {
namespace {

std::optional<int64_t> to_integer(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return value.get<int64_t>();
}

}  // namespace

ConfigObject::ConfigObject(const Json& value, std::string source, std::string prefix)
    : value_(&value), source_(std::move(source)), prefix_(std::move(prefix)) {
  if (!value.is_object()) fail(fmt::format("a JSON object is expected, not {}", shown(value)));
}

bool ConfigObject::is_null(std::string_view key) const {
  const auto found = value_->find(key);
  return found != value_->end() && found->is_null();
}

const Json* ConfigObject::find(std::string_view key) const {
  const auto found = value_->find(key);
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

std::optional<int64_t> ConfigObject::integer(std::string_view key, Range limits) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> number = to_integer(*value);
  if (!number || !limits.contains(*number)) {
    fail_value(key, fmt::format("an integer from {} to {}", limits.begin, limits.end - 1));
  }
  return number;
}

int64_t ConfigObject::required_integer(std::string_view key, Range limits) const {
  const auto value = integer(key, limits);
  if (!value) fail_absent(key);
  return *value;
}

std::optional<double> ConfigObject::number(std::string_view key, double least, double most) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !(value->get<double>() >= least && value->get<double>() <= most)) {
    fail_value(key, fmt::format("a number from {} to {}", least, most));
  }
  return value->get<double>();
}

double ConfigObject::required_number(std::string_view key, double least, double most) const {
  const auto value = number(key, least, most);
  if (!value) fail_absent(key);
  return *value;
}

std::optional<bool> ConfigObject::boolean(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) fail_value(key, "true or false");
  return value->get<bool>();
}

std::optional<std::string> ConfigObject::text(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail_value(key, "a string");
  return value->get<std::string>();
}

std::optional<ConfigObject> ConfigObject::object(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) fail_value(key, "an object");
  return ConfigObject(*value, source_, name_of(key) + ".");
}

std::string ConfigObject::name_of(std::string_view key) const {
  return prefix_ + std::string(key);
}

void ConfigObject::fail(std::string_view message) const {
  throw ConfigError(fmt::format("{}: {}", source_, message));
}

void ConfigObject::fail_value(std::string_view key, std::string_view expected) const {
  fail(fmt::format("{} is {}; {} is expected", name_of(key), shown(value_->at(std::string(key))), expected));
}

void ConfigObject::fail_absent(std::string_view key) const {
  fail(fmt::format("{} is {}; it has no default here", name_of(key), is_null(key) ? "null" : "absent"));
}

std::string shown(const Json& value) {
  constexpr size_t kLongest = 80;
  const std::string text = dump_json(value);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

}  // namespace headway
