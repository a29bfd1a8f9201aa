#pragma once

#include <cstdint>
#include <span>

#include "headway/engine/request_output.h"

namespace headway {

/// Log-probabilities of softmax(logits), in double precision: of `token` and of the `top` likeliest, of equals those
/// with the lowest ids.
TokenLogprobs logprobs_of(std::span<const float> logits, int32_t token, int64_t top);

}  // namespace headway
