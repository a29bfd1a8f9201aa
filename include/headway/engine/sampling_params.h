#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace headway {

/// The most alternatives that `logprobs` and `prompt_logprobs` may ask for.
constexpr int64_t kMaxLogprobs = 20;

/// How the next token is chosen. Names, ranges and the order of the steps are vLLM's: bias and mask, penalties,
/// temperature, top_k, min_p, top_p. Log-probabilities are those of the model, before all of these.
struct SamplingParams {
  double temperature = 0.0;              ///< 0 is greedy
  double top_p = 1.0;                    ///< in (0, 1]
  int64_t top_k = 0;                     ///< 0 or -1: off
  double min_p = 0.0;                    ///< in [0, 1]: least probability, as a part of the largest one
  double repetition_penalty = 1.0;       ///< above 0; divides logits > 0 of tokens in prompt or text, multiplies others
  double presence_penalty = 0.0;         ///< in [-2, 2]; taken off the logits of tokens in the text
  double frequency_penalty = 0.0;        ///< in [-2, 2]; the same for each time that a token is in the text
  std::map<int32_t, double> logit_bias;  ///< token id -> what is added to its logit, in [-100, 100]
  std::optional<uint64_t> seed;          ///< absent: rank 0 draws one
  int64_t max_tokens = 16;               ///< new tokens at most
  int64_t min_tokens = 0;                ///< new tokens before any that would end the text; at most max_tokens
  bool ignore_eos = false;               ///< the model's end-of-sequence tokens do not end the text
  std::vector<int32_t> stop_token_ids;   ///< further tokens that end the text
  std::optional<int64_t> logprobs;       ///< log-probabilities of new tokens, and of so many of the likeliest
  std::optional<int64_t> prompt_logprobs;  ///< the same for the prompt's tokens

  /// Throws ArgumentError naming the parameter, its value and what is legal.
  void validate() const;

  /// The same, and for token ids that are not in a vocabulary of `vocab_size`.
  void validate(int64_t vocab_size) const;
};

}  // namespace headway
