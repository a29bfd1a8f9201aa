#include "headway/engine/sampling_params.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "headway/base/error.h"

namespace headway {
namespace {

template <typename Value>
[[noreturn]] void refuse(std::string_view name, Value value, std::string_view legal) {
  throw ArgumentError(fmt::format("{} is {}; it must be {}", name, value, legal));
}

void check_distribution(const SamplingParams& params) {
  if (!std::isfinite(params.temperature) || params.temperature < 0) {
    refuse("temperature", params.temperature, "a finite number >= 0 (0 is greedy)");
  }
  if (!(params.top_p > 0 && params.top_p <= 1)) refuse("top_p", params.top_p, "above 0 and at most 1");
  if (params.top_k < -1) refuse("top_k", params.top_k, ">= 1, or 0 or -1 to be off");
  if (!(params.min_p >= 0 && params.min_p <= 1)) refuse("min_p", params.min_p, "in 0 to 1");
}

void check_penalty(std::string_view name, double value) {
  if (!(value >= -2 && value <= 2)) refuse(name, value, "in -2 to 2");
}

void check_logits(const SamplingParams& params) {
  if (!std::isfinite(params.repetition_penalty) || params.repetition_penalty <= 0) {
    refuse("repetition_penalty", params.repetition_penalty, "a finite number above 0");
  }
  check_penalty("presence_penalty", params.presence_penalty);
  check_penalty("frequency_penalty", params.frequency_penalty);
  for (const auto& [token, bias] : params.logit_bias) {
    if (!(bias >= -100 && bias <= 100)) refuse(fmt::format("logit_bias of token {}", token), bias, "in -100 to 100");
  }
}

void check_length(const SamplingParams& params) {
  if (params.max_tokens < 1) refuse("max_tokens", params.max_tokens, "at least 1");
  if (params.min_tokens < 0 || params.min_tokens > params.max_tokens) {
    refuse("min_tokens", params.min_tokens, fmt::format("in 0 to max_tokens, which is {}", params.max_tokens));
  }
}

void check_logprobs(std::string_view name, std::optional<int64_t> count) {
  if (count && (*count < 0 || *count > kMaxLogprobs)) refuse(name, *count, fmt::format("in 0 to {}", kMaxLogprobs));
}

void check_token(std::string_view name, int32_t token, int64_t vocab_size) {
  if (token >= 0 && token < vocab_size) return;
  throw ArgumentError(fmt::format("{}: token id {} is not in the vocabulary of {}", name, token, vocab_size));
}

}  // namespace

void SamplingParams::validate() const {
  check_distribution(*this);
  check_logits(*this);
  check_length(*this);
  check_logprobs("logprobs", logprobs);
  check_logprobs("prompt_logprobs", prompt_logprobs);
}

void SamplingParams::validate(int64_t vocab_size) const {
  validate();
  for (const auto& [token, bias] : logit_bias) check_token("logit_bias", token, vocab_size);
  for (const int32_t token : stop_token_ids) check_token("stop_token_ids", token, vocab_size);
}

}  // namespace headway
