#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace headway {

/// Throws ArgumentError unless `input` is [tokens, features]; `layer` names the caller.
void check_input_features(const at::Tensor& input, int64_t features, std::string_view layer);

}  // namespace headway
