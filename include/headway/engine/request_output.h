#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headway {

/// Names a request within one engine; later requests have larger ones.
using RequestId = uint64_t;

/// Why a request ended: a token or text that stops it, a limit in length, or logits that no token can be chosen from.
enum class FinishReason { stop, length, error };

/// "stop", "length", "error".
std::string_view name_of(FinishReason reason);

/// How likely the model found one token at one place.
struct TokenLogprob {
  int32_t token = 0;
  double logprob = 0;  ///< natural logarithm
  int64_t rank = 1;    ///< 1 for the likeliest token
  friend bool operator==(const TokenLogprob&, const TokenLogprob&) = default;
};

/// What the model thought of a token, whatever sampling made of it.
struct TokenLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  ///< as many as were asked for, the likeliest first
  friend bool operator==(const TokenLogprobs&, const TokenLogprobs&) = default;
};

/// What one step brought a request.
struct RequestOutput {
  RequestId request = 0;
  std::vector<int32_t> token_ids;             ///< the new ones; a token that ends the text is among them
  std::optional<FinishReason> finish_reason;  ///< set on a request's last output
  std::string error;                          ///< what went wrong, with FinishReason::error
  std::vector<TokenLogprobs> logprobs;        ///< one for each of token_ids, where they were asked for
  /// On a request's first output, where they were asked for: one for each token of the prompt but the first, which
  /// follows from nothing.
  std::vector<TokenLogprobs> prompt_logprobs;
  std::optional<int32_t> stop_token;  ///< which of `stop_token_ids` ended the text; absent for end of sequence
};

}  // namespace headway
