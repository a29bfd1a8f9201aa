#include "weights/listed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace headway {

std::string listed(std::string_view what, const std::vector<std::string>& items) {
  constexpr size_t kShown = 10;
  const std::span shown(items.data(), std::min(items.size(), kShown));
  return fmt::format("{} {}: {}{}", items.size(), what, fmt::join(shown, ", "), items.size() > kShown ? ", ..." : "");
}

}  // namespace headway
