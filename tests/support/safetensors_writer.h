#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headway::test {

/// A tensor to be written: its bytes are not checked against its shape.
struct RawTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

/// The little-endian length before a header.
inline std::string length_prefix(uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes;
}

/// A safetensors file of that header and data, whether they fit each other or not.
inline std::string safetensors_of(std::string_view header, std::string_view data) {
  return length_prefix(header.size()) + std::string(header) + std::string(data);
}

/// A well-formed safetensors file that holds `tensors` in their order.
inline std::string safetensors_of(const std::vector<RawTensor>& tensors) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const RawTensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // as writers align the data
  return safetensors_of(text, data);
}

}  // namespace headway::test
