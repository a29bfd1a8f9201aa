#include "tokenizer/utf8.h"

#include <cstdint>
#include <utility>

namespace headway {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// How many bytes follow a lead byte, and between which values the first of them must lie.
struct Continuation {
  size_t count;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
};

Continuation continuation_of(uint8_t lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return {1};
  if (lead == 0xE0) return {2, 0xA0, 0xBF};  // no overlong form
  if (lead == 0xED) return {2, 0x80, 0x9F};  // no surrogate
  if (lead >= 0xE1 && lead <= 0xEF) return {2};
  if (lead == 0xF0) return {3, 0x90, 0xBF};  // no overlong form
  if (lead == 0xF4) return {3, 0x80, 0x8F};  // not above U+10FFFF
  if (lead >= 0xF1 && lead <= 0xF3) return {3};
  return {0};
}

}  // namespace

Utf8Unit read_utf8_unit(std::string_view text, size_t position) {
  const auto byte = [text](size_t index) { return static_cast<uint8_t>(text[index]); };
  if (byte(position) < 0x80) return {Utf8Unit::Kind::character, 1};
  const Continuation expected = continuation_of(byte(position));
  if (expected.count == 0) return {Utf8Unit::Kind::invalid, 1};
  for (size_t i = 1; i <= expected.count; ++i) {
    if (position + i == text.size()) return {Utf8Unit::Kind::incomplete, i};
    const uint8_t low = i == 1 ? expected.low : 0x80;
    const uint8_t high = i == 1 ? expected.high : 0xBF;
    if (byte(position + i) < low || byte(position + i) > high) return {Utf8Unit::Kind::invalid, i};
  }
  return {Utf8Unit::Kind::character, expected.count + 1};
}

char32_t code_point_of(std::string_view character) {
  const auto lead = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return lead;
  char32_t code_point = lead & (0x7F >> character.size());
  for (const char c : character.substr(1)) code_point = code_point << 6 | (static_cast<uint8_t>(c) & 0x3F);
  return code_point;
}

std::string take_settled_utf8(std::string& bytes) {
  std::string settled;
  settled.reserve(bytes.size());
  size_t position = 0;
  while (position < bytes.size()) {
    const Utf8Unit unit = read_utf8_unit(bytes, position);
    if (unit.kind == Utf8Unit::Kind::incomplete) break;
    if (unit.kind == Utf8Unit::Kind::character) {
      settled.append(bytes, position, unit.length);
    } else {
      settled += kReplacement;
    }
    position += unit.length;
  }
  bytes.erase(0, position);
  return settled;
}

std::string to_valid_utf8(std::string bytes) {
  std::string text = take_settled_utf8(bytes);
  if (!bytes.empty()) text += kReplacement;
  return text;
}

}  // namespace headway
