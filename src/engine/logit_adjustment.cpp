#include "engine/logit_adjustment.h"

#include <limits>
#include <unordered_map>
#include <unordered_set>

namespace headway {
namespace {

bool too_short(const SamplingParams& params, const TokenHistory& history) {
  return static_cast<int64_t>(history.text.size()) < params.min_tokens;
}

bool penalises(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.frequency_penalty != 0 || params.presence_penalty != 0;
}

void penalise_repetition(std::vector<float>& logits, double penalty, const TokenHistory& history) {
  std::unordered_set<int32_t> seen(history.prompt.begin(), history.prompt.end());
  seen.insert(history.text.begin(), history.text.end());
  for (const int32_t token : seen) {
    const double logit = logits[token];
    logits[token] = static_cast<float>(logit > 0 ? logit / penalty : logit * penalty);
  }
}

void penalise_presence(std::vector<float>& logits, const SamplingParams& params, std::span<const int32_t> text) {
  std::unordered_map<int32_t, int64_t> counts;
  for (const int32_t token : text) ++counts[token];
  for (const auto& [token, count] : counts) {
    const double penalty = params.frequency_penalty * static_cast<double>(count) + params.presence_penalty;
    logits[token] = static_cast<float>(logits[token] - penalty);
  }
}

}  // namespace

bool adjusts_logits(const SamplingParams& params, const TokenHistory& history) {
  return too_short(params, history) || !params.logit_bias.empty() || penalises(params);
}

void adjust_logits(std::vector<float>& logits, const SamplingParams& params, const TokenHistory& history) {
  if (too_short(params, history)) {
    for (const int32_t token : history.ending_token_ids) {  // a model's config may name ids beyond its vocabulary
      if (static_cast<size_t>(token) < logits.size()) logits[token] = -std::numeric_limits<float>::infinity();
    }
  }
  for (const auto& [token, bias] : params.logit_bias) logits[token] = static_cast<float>(logits[token] + bias);
  if (params.repetition_penalty != 1) penalise_repetition(logits, params.repetition_penalty, history);
  penalise_presence(logits, params, history.text);
}

}  // namespace headway
