#include "weights/safetensors_header_reader.h"

#include <fmt/format.h>

#include "headway/base/error.h"
#include "weights/in_quotes.h"

namespace headway {
namespace {

constexpr std::string_view kMetadata = "__metadata__";
constexpr size_t kLargestRank = 64;

}  // namespace

std::map<std::string, TensorInfo> SafetensorsHeaderReader::read(std::string_view json, std::string_view source) {
  SafetensorsHeaderReader reader(source);
  nlohmann::json::sax_parse(json, &reader);
  return std::move(reader.tensors_);
}

bool SafetensorsHeaderReader::null() {
  refuse("null");
}

bool SafetensorsHeaderReader::boolean(bool) {
  refuse("true or false");
}

bool SafetensorsHeaderReader::number_integer(number_integer_t value) {
  refuse(fmt::format("{}", value));
}

bool SafetensorsHeaderReader::number_unsigned(number_unsigned_t value) {
  auto* list = place_ == Place::shape ? &shape_ : place_ == Place::offsets ? &offsets_ : nullptr;
  const size_t longest = place_ == Place::shape ? kLargestRank : 2;
  if (list == nullptr || value > static_cast<number_unsigned_t>(INT64_MAX)) refuse(fmt::format("{}", value));
  if ((*list)->size() == longest) fail(fmt::format("more than {} numbers in {}", longest, in_quotes(key_)));
  (*list)->push_back(static_cast<int64_t>(value));
  return true;
}

bool SafetensorsHeaderReader::number_float(number_float_t, const string_t& text) {
  refuse(text);
}

bool SafetensorsHeaderReader::string(string_t& value) {
  if (place_ == Place::metadata) return true;
  if (place_ != Place::tensor || key_ != "dtype") refuse(in_quotes(value));
  dtype_ = dtype_from_safetensors(value);
  if (!dtype_) fail(fmt::format("unknown dtype {}", in_quotes(value)));
  return true;
}

bool SafetensorsHeaderReader::binary(binary_t&) {
  refuse("binary");
}

bool SafetensorsHeaderReader::start_object(std::size_t) {
  if (place_ == Place::before) {
    place_ = Place::header;
  } else if (place_ == Place::header) {
    place_ = name_ == kMetadata ? Place::metadata : Place::tensor;
  } else {
    refuse("an object");
  }
  return true;
}

bool SafetensorsHeaderReader::key(string_t& value) {
  bool fresh = true;
  if (place_ == Place::header) {
    name_ = value;
    key_.clear();
    fresh = value == kMetadata ? !has_metadata_ : !tensors_.contains(value);
    has_metadata_ = has_metadata_ || value == kMetadata;
  } else if (place_ == Place::metadata) {
    fresh = metadata_keys_.insert(value).second;
  } else {
    key_ = value;
    fresh = !(value == "dtype" ? dtype_.has_value() : value == "shape" ? shape_.has_value() : offsets_.has_value());
    if (value != "dtype" && value != "shape" && value != "data_offsets") {
      fail(fmt::format("unknown key {}", in_quotes(value)));
    }
  }
  if (!fresh) throw CheckpointError(fmt::format("{}: {} occurs twice in the header", source_, in_quotes(value)));
  return true;
}

bool SafetensorsHeaderReader::end_object() {
  if (place_ == Place::tensor) finish_tensor();
  place_ = place_ == Place::header ? Place::after : Place::header;
  return true;
}

bool SafetensorsHeaderReader::start_array(std::size_t) {
  if (place_ != Place::tensor || key_ == "dtype") refuse("an array");
  if (key_ == "shape") {
    shape_.emplace();
    place_ = Place::shape;
  } else {
    offsets_.emplace();
    place_ = Place::offsets;
  }
  return true;
}

bool SafetensorsHeaderReader::end_array() {
  place_ = Place::tensor;
  return true;
}

bool SafetensorsHeaderReader::parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
  throw CheckpointError(fmt::format("{}: the header is not valid JSON at its byte {}", source_, position));
}

void SafetensorsHeaderReader::finish_tensor() {
  if (!dtype_) fail("no dtype");
  if (!shape_) fail("no shape");
  if (!offsets_ || offsets_->size() != 2) fail("no data_offsets of two numbers");
  tensors_.emplace(name_, TensorInfo{*dtype_, std::move(*shape_), offsets_->front(), offsets_->back()});
  dtype_.reset();
  shape_.reset();
  offsets_.reset();
}

void SafetensorsHeaderReader::fail(const std::string& message) const {
  throw CheckpointError(fmt::format("{}: tensor {}: {}", source_, in_quotes(name_), message));
}

void SafetensorsHeaderReader::refuse(std::string_view what) const {
  if (place_ == Place::before) throw CheckpointError(fmt::format("{}: the header is not a JSON object", source_));
  const std::string where = key_.empty() ? in_quotes(name_) : in_quotes(name_) + "." + key_;
  throw CheckpointError(fmt::format("{}: {} is not expected in the header at {}", source_, what, where));
}

}  // namespace headway
