#pragma once

#include <array>
#include <string>
#include <string_view>

namespace headway {

/// Byte-level vocabularies write every byte as one printable character: the printable bytes as themselves, the others
/// as U+0100, U+0101, ... in order. This is the character of each byte, in UTF-8.
const std::array<std::string, 256>& byte_level_characters();

/// The bytes that a vocabulary entry stands for. An entry with any other character than those stands for its own UTF-8.
std::string bytes_of_token(std::string_view token);

}  // namespace headway
