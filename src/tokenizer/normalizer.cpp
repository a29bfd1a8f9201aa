#include "tokenizer/normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "headway/base/error.h"

namespace headway {
namespace {

struct Free {
  void operator()(utf8proc_uint8_t* text) const { std::free(text); }
};

/// Below U+0300, the first combining mark, every text is in form C already.
bool surely_nfc(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0xCC; });
}

}  // namespace

std::string to_nfc(std::string_view text) {
  if (surely_nfc(text)) return std::string(text);
  utf8proc_uint8_t* composed = nullptr;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &composed, options);
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(composed);
  if (size < 0) {
    throw ArgumentError(fmt::format("a text of {} bytes cannot be normalized: {}", text.size(), utf8proc_errmsg(size)));
  }
  return std::string(reinterpret_cast<const char*>(composed), static_cast<size_t>(size));
}

}  // namespace headway
