#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headway {

/// "3 tensors are missing: a, b, c" with at most ten of the items, then "...". `what` follows the count.
std::string listed(std::string_view what, const std::vector<std::string>& items);

}  // namespace headway
