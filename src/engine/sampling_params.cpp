#include "headway/engine/sampling_params.h"

#include <fmt/format.h>

#include <cmath>

#include "headway/base/error.h"

namespace headway {

void SamplingParams::validate() const {
  if (!std::isfinite(temperature) || temperature < 0) {
    throw ArgumentError(fmt::format("temperature is {}; it must be a finite number >= 0 (0 is greedy)", temperature));
  }
  if (!(top_p > 0 && top_p <= 1)) {
    throw ArgumentError(fmt::format("top_p is {}; it must be above 0 and at most 1", top_p));
  }
  if (top_k < -1) {
    throw ArgumentError(fmt::format("top_k is {}; it must be >= 1, or 0 or -1 to be off", top_k));
  }
  if (max_tokens < 1) {
    throw ArgumentError(fmt::format("max_tokens is {}; it must be at least 1", max_tokens));
  }
}

}  // namespace headway
