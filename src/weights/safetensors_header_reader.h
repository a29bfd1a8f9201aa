#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "headway/weights/safetensors_file.h"

namespace headway {

/// Reads the JSON of a safetensors header as it is parsed, so that no tree of a large header is built: one object of
/// {name: {"dtype": text, "shape": [sizes], "data_offsets": [begin, end]}} and, at most once, "__metadata__": {text:
/// text}. Whatever else the JSON holds is refused. Offsets are not compared here.
class SafetensorsHeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit SafetensorsHeaderReader(std::string_view source) : source_(source) {}

  /// Throws CheckpointError that begins with the source.
  static std::map<std::string, TensorInfo> read(std::string_view json, std::string_view source);

  bool null() override;
  bool boolean(bool value) override;
  bool number_integer(number_integer_t value) override;
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t value, const string_t& text) override;
  bool string(string_t& value) override;
  bool binary(binary_t& value) override;
  bool start_object(std::size_t elements) override;
  bool key(string_t& value) override;
  bool end_object() override;
  bool start_array(std::size_t elements) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::json::exception& error) override;

 private:
  enum class Place { before, header, metadata, tensor, shape, offsets, after };

  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void refuse(std::string_view what) const;
  void finish_tensor();

  std::string_view source_;
  Place place_ = Place::before;
  std::map<std::string, TensorInfo> tensors_;
  bool has_metadata_ = false;
  std::set<std::string> metadata_keys_;
  std::string name_;  ///< of the tensor that is being read
  std::string key_;   ///< the key last read within it
  std::optional<DType> dtype_;
  std::optional<std::vector<int64_t>> shape_;
  std::optional<std::vector<int64_t>> offsets_;
};

}  // namespace headway
