#pragma once

#include <string>
#include <string_view>

namespace headway {

/// Gloo's account of a failure in our own words: without its source files, and without advice that does not fit. What
/// is not known here is given as it is, from behind its source file.
std::string gloo_reason(std::string_view text);

}  // namespace headway
