#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "headway/engine/request_output.h"
#include "headway/tokenizer/tokenizer.h"

namespace headway {

/// Log-probabilities in the form of chat completions: {"content": [{token, logprob, bytes, top_logprobs}]}.
Json chat_logprobs(const std::vector<TokenLogprobs>& logprobs, const std::optional<Tokenizer>& tokenizer);

/// Those of completions: {tokens, token_logprobs, top_logprobs, text_offset}, one of each for each token. A prompt's
/// first token, `first`, has none. Offsets count characters.
Json completion_logprobs(const std::vector<TokenLogprobs>& logprobs, std::optional<int32_t> first,
                         const std::optional<Tokenizer>& tokenizer);

}  // namespace headway
