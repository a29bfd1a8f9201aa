#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headway/engine/sampling_params.h"

namespace headway {

/// What a request has said so far, as far as the choice of its next token depends on it.
struct TokenHistory {
  std::span<const int32_t> prompt;
  std::span<const int32_t> text;              ///< the tokens that were generated
  std::span<const int32_t> ending_token_ids;  ///< those that would end the text
};

/// Whether `adjust_logits` would change anything.
bool adjusts_logits(const SamplingParams& params, const TokenHistory& history);

/// Changes one row of logits as `params` ask: tokens that would end a text shorter than min_tokens get -infinity, then
/// logit_bias is added, then the penalties apply, each once and in this order: repetition, frequency, presence.
void adjust_logits(std::vector<float>& logits, const SamplingParams& params, const TokenHistory& history);

}  // namespace headway
