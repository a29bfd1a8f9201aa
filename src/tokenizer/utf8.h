#pragma once

#include <string>
#include <string_view>

namespace headway {

/// What the bytes at one position of a text are.
struct Utf8Unit {
  enum class Kind {
    character,   ///< one whole character
    invalid,     ///< bytes that begin no character; read together as one U+FFFD
    incomplete,  ///< the text ends inside a character
  };
  Kind kind;
  size_t length;  ///< in bytes, at least 1
};

/// Reads the unit at `position` < text.size(). A broken character is one unit as far as it could have been valid, the
/// rule of the Unicode standard (section 3.9) that Rust and the web follow too.
Utf8Unit read_utf8_unit(std::string_view text, size_t position);

/// The code point of one whole character.
char32_t code_point_of(std::string_view character);

/// Removes from the front of `bytes` all that is settled and returns it as valid UTF-8. At most one unfinished
/// character stays behind.
std::string take_settled_utf8(std::string& bytes);

/// `bytes` as valid UTF-8, with U+FFFD for what is not.
std::string to_valid_utf8(std::string bytes);

}  // namespace headway
