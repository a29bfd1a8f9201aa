#pragma once

#include "headway/base/range.h"

namespace headway {

// The largest values that a config may state. They lie far above every public model, and low enough that bytes of
// weights and of a full KV cache, as products of them, fit 63 bits.
constexpr Range kWidthLimits{1, (int64_t{1} << 20) + 1};  ///< hidden_size, query heads x head_dim
constexpr Range kIntermediateLimits{1, (int64_t{1} << 24) + 1};
constexpr Range kVocabLimits{1, (int64_t{1} << 24) + 1};
constexpr Range kLayerLimits{1, (int64_t{1} << 12) + 1};
constexpr Range kHeadLimits{1, (int64_t{1} << 14) + 1};
constexpr Range kHeadDimLimits{2, (int64_t{1} << 13) + 1};
constexpr Range kPositionLimits{1, (int64_t{1} << 27) + 1};
constexpr Range kTokenIdLimits{0, int64_t{1} << 31};

}  // namespace headway
