#pragma once

#include <string>
#include <string_view>

namespace headway {

/// `text`, which must be valid UTF-8, in Unicode normalization form C as the tokenizers library has it: with the data
/// of Unicode 9, so that marks which came later neither compose nor move.
std::string to_nfc(std::string_view text);

}  // namespace headway
