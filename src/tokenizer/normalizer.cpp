#include "tokenizer/normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "headway/base/error.h"
#include "tokenizer/utf8.h"

namespace headway {
namespace {

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

/// Composes a stretch of text. utf8proc sorts marks by bubble sort; sorting them before keeps long runs linear.
class Composer {
 public:
  explicit Composer(std::string& output) : output_(output) {}

  void add(std::string_view character) {
    constexpr utf8proc_ssize_t kLongest = 8;  // Unicode's longest canonical decomposition is 4
    const size_t size = code_points_.size();
    code_points_.resize(size + kLongest);
    int last_class = UTF8PROC_BOUNDCLASS_START;  // only asked for by an option that is not used
    const auto written = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point_of(character)),
                                                 code_points_.data() + size, kLongest, UTF8PROC_DECOMPOSE, &last_class);
    if (written < 0 || written > kLongest) {
      throw ArgumentError(
          fmt::format("the character \"{}\" cannot be normalized: {}", character, utf8proc_errmsg(written)));
    }
    code_points_.resize(size + static_cast<size_t>(written));
  }

  /// Writes what was added.
  void flush() {
    sort_marks();
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    const auto size =
        utf8proc_normalize_utf32(code_points_.data(), static_cast<utf8proc_ssize_t>(code_points_.size()), options);
    for (utf8proc_ssize_t i = 0; i < size; ++i) {
      std::array<utf8proc_uint8_t, 4> bytes{};
      const auto length = utf8proc_encode_char(code_points_[static_cast<size_t>(i)], bytes.data());
      output_.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(length));
    }
    code_points_.clear();
  }

 private:
  static int combining_class(utf8proc_int32_t code_point) { return utf8proc_get_property(code_point)->combining_class; }

  void sort_marks() {
    const auto is_mark = [](utf8proc_int32_t code_point) { return combining_class(code_point) != 0; };
    for (auto begin = code_points_.begin(); begin != code_points_.end();) {
      begin = std::find_if(begin, code_points_.end(), is_mark);
      const auto end = std::find_if_not(begin, code_points_.end(), is_mark);
      std::ranges::stable_sort(begin, end, {}, combining_class);
      begin = end;
    }
  }

  std::string& output_;
  std::vector<utf8proc_int32_t> code_points_;
};

}  // namespace

std::string to_nfc(std::string_view text) {
  if (surely_nfc(text)) return std::string(text);
  std::string output;
  output.reserve(text.size());
  Composer composer(output);
  for (size_t position = 0; position < text.size();) {
    const std::string_view character = text.substr(position, read_utf8_unit(text, position).length);
    if (is_inert(character)) {
      composer.flush();
      output += character;
    } else {
      composer.add(character);
    }
    position += character.size();
  }
  composer.flush();
  return output;
}

}  // namespace headway
