#include "tokenizer/byte_level.h"

#include <unordered_map>

#include "tokenizer/utf8.h"

namespace headway {
namespace {

bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

std::string utf8_of(int code_point) {  // of at most two bytes
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
}

std::array<std::string, 256> make_characters() {
  std::array<std::string, 256> characters;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) characters[byte] = utf8_of(stands_for_itself(byte) ? byte : next++);
  return characters;
}

std::unordered_map<std::string_view, char> make_bytes() {
  std::unordered_map<std::string_view, char> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace(byte_level_characters()[byte], static_cast<char>(byte));
  return bytes;
}

}  // namespace

const std::array<std::string, 256>& byte_level_characters() {
  static const std::array<std::string, 256> characters = make_characters();
  return characters;
}

std::string bytes_of_token(std::string_view token) {
  static const std::unordered_map<std::string_view, char> byte_of = make_bytes();
  std::string bytes;
  for (size_t position = 0; position < token.size();) {
    const size_t length = read_utf8_unit(token, position).length;
    const auto found = byte_of.find(token.substr(position, length));
    if (found == byte_of.end()) return std::string(token);
    bytes += found->second;
    position += length;
  }
  return bytes;
}

}  // namespace headway
