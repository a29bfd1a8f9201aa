#pragma once

#include <string>
#include <string_view>

namespace headway {

/// `text`, which must be valid UTF-8, in Unicode normalization form C (Unicode 14).
std::string to_nfc(std::string_view text);

}  // namespace headway
