#include "layers/linear_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headway/base/error.h"

namespace headway {

void check_input_features(const at::Tensor& input, int64_t features, std::string_view layer) {
  if (input.dim() == 2 && input.size(1) == features) return;
  throw ArgumentError(
      fmt::format("{}: expected an input of [tokens, {}], got [{}]", layer, features, fmt::join(input.sizes(), ", ")));
}

}  // namespace headway
