#include "tokenizer/json_field.h"

#include <fmt/format.h>

#include "headway/base/error.h"

namespace headway {

std::optional<JsonField> JsonField::find(std::string_view key) const {
  const Json& members = object();
  const auto found = members.find(key);
  if (found == members.end() || found->is_null()) return std::nullopt;
  return JsonField(*found, file_, place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key));
}

JsonField JsonField::at(std::string_view key) const {
  auto found = find(key);
  if (!found) fail(fmt::format("\"{}\" is missing", key));
  return *std::move(found);
}

JsonField JsonField::at(size_t index) const {
  if (index >= size()) fail(fmt::format("entry {} of {} is missing", index, size()));
  return JsonField((*value_)[index], file_, fmt::format("{}[{}]", place_, index));
}

size_t JsonField::size() const {
  if (!value_->is_array()) fail("is not a list");
  return value_->size();
}

const Json& JsonField::object() const {
  if (!value_->is_object()) fail("is not an object");
  return *value_;
}

const std::string& JsonField::string() const {
  if (!value_->is_string()) fail("is not a string");
  return value_->get_ref<const std::string&>();
}

bool JsonField::boolean() const {
  if (!value_->is_boolean()) fail("is neither true nor false");
  return value_->get<bool>();
}

bool JsonField::boolean_or(std::string_view key, bool otherwise) const {
  const auto field = find(key);
  return field ? field->boolean() : otherwise;
}

std::string JsonField::string_or(std::string_view key, std::string_view otherwise) const {
  const auto field = find(key);
  return field ? field->string() : std::string(otherwise);
}

void JsonField::fail(std::string_view problem) const {
  throw CheckpointError(fmt::format("{}:{}{} {}", file_, place_.empty() ? "" : " ", place_, problem));
}

}  // namespace headway
