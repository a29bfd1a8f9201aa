#include "engine/logprobs.h"

#include <algorithm>
#include <cmath>

#include "engine/sampler.h"

namespace headway {
namespace {

double log_of_sum(std::span<const float> logits, double maximum) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - maximum);
  return maximum + std::log(sum);
}

/// The place of a token among all, from the likeliest; equals are in the order of their ids.
int64_t rank_of(std::span<const float> logits, int32_t token) {
  int64_t rank = 1;
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool before = static_cast<int32_t>(i) < token;
    if (logits[i] > logits[token] || (before && logits[i] == logits[token])) ++rank;
  }
  return rank;
}

}  // namespace

TokenLogprobs logprobs_of(std::span<const float> logits, int32_t token, int64_t top) {
  const double normaliser = log_of_sum(logits, *std::max_element(logits.begin(), logits.end()));
  TokenLogprobs result{{token, logits[token] - normaliser, rank_of(logits, token)}, {}};
  if (top == 0) return result;
  for (const Candidate& candidate : keep_top_k(all_candidates(logits), std::min<int64_t>(top, logits.size()))) {
    result.top.push_back({candidate.token, candidate.weight - normaliser, 0});
  }
  std::sort(result.top.begin(), result.top.end(), [](const TokenLogprob& a, const TokenLogprob& b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
  });
  for (size_t i = 0; i < result.top.size(); ++i) result.top[i].rank = static_cast<int64_t>(i) + 1;
  return result;
}

}  // namespace headway
