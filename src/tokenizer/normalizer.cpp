#include "tokenizer/normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "headway/base/error.h"
#include "tokenizer/utf8.h"

namespace headway {
namespace {

struct Free {
  void operator()(utf8proc_uint8_t* text) const { std::free(text); }
};

/// Below U+0300, the first combining mark, every text is in form C already.
bool surely_nfc(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0xCC; });
}

struct CodePoints {
  char32_t first;
  char32_t last;
};

// The code points that have a combining class, or compose, in Unicode 15 but not in Unicode 9. U+11A7 is no Hangul
// consonant, but utf8proc 2.8 takes it for one and drops it.
constexpr std::array<CodePoints, 38> kInert{{
    {0x07FD, 0x07FD},   {0x0898, 0x089F},   {0x08CA, 0x08D3},   {0x09FE, 0x09FE},   {0x0C3C, 0x0C3C},
    {0x0D3B, 0x0D3C},   {0x0EBA, 0x0EBA},   {0x11A7, 0x11A7},   {0x1715, 0x1715},   {0x1ABF, 0x1ACE},
    {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF},
    {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E},
    {0x11839, 0x1183A}, {0x11930, 0x11930}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0},
    {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45},
    {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136},
    {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
}};

bool is_inert(std::string_view character) {
  if (character.size() == 1) return false;
  const char32_t code_point = code_point_of(character);
  const auto range = std::ranges::lower_bound(kInert, code_point, {}, &CodePoints::last);
  return range != kInert.end() && range->first <= code_point;
}

void append_nfc(std::string_view text, std::string& output) {
  if (surely_nfc(text)) {
    output += text;
    return;
  }
  utf8proc_uint8_t* composed = nullptr;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &composed, options);
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(composed);
  if (size < 0) {
    throw ArgumentError(fmt::format("a text of {} bytes cannot be normalized: {}", text.size(), utf8proc_errmsg(size)));
  }
  output.append(reinterpret_cast<const char*>(composed), static_cast<size_t>(size));
}

}  // namespace

std::string to_nfc(std::string_view text) {
  std::string output;
  output.reserve(text.size());
  size_t begin = 0;  // of what is not in the output yet
  for (size_t position = 0; position < text.size();) {
    const size_t length = read_utf8_unit(text, position).length;
    if (is_inert(text.substr(position, length))) {
      append_nfc(text.substr(begin, position - begin), output);
      output += text.substr(position, length);
      begin = position + length;
    }
    position += length;
  }
  append_nfc(text.substr(begin), output);
  return output;
}

}  // namespace headway
