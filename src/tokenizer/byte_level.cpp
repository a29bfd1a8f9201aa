#include "tokenizer/byte_level.h"

#include <cstdint>

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

constexpr char32_t kEnd = 0x180;  // the characters of bytes lie below

/// The byte that each character stands for, or -1.
std::array<int16_t, kEnd> make_bytes() {
  std::array<int16_t, kEnd> bytes;
  bytes.fill(-1);
  for (int byte = 0; byte < 256; ++byte) {
    bytes[code_point_of(byte_level_characters()[byte])] = static_cast<int16_t>(byte);
  }
  return bytes;
}

}  // namespace

const std::array<std::string, 256>& byte_level_characters() {
  static const std::array<std::string, 256> characters = make_characters();
  return characters;
}

std::string bytes_of_token(std::string_view token) {
  static const std::array<int16_t, kEnd> byte_of = make_bytes();
  std::string bytes;
  for (size_t position = 0; position < token.size();) {
    const size_t length = read_utf8_unit(token, position).length;
    const char32_t character = code_point_of(token.substr(position, length));
    if (character >= kEnd || byte_of[character] < 0) return std::string(token);
    bytes += static_cast<char>(byte_of[character]);
    position += length;
  }
  return bytes;
}

}  // namespace headway
