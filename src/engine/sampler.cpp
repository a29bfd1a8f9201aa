#include "engine/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/philox.h"
#include "headway/base/error.h"

namespace headway {
namespace {

constexpr size_t kFirstTopPGuess = 64;

bool ranks_before(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
}

double total_weight(const Candidates& candidates, size_t count) {
  return std::accumulate(candidates.begin(), candidates.begin() + count, 0.0,
                         [](double sum, const Candidate& candidate) { return sum + candidate.weight; });
}

/// Sorts just so many of the best candidates to the front that their weights reach `target`; returns how many.
/// A full sort of a large vocabulary would cost more than the rest of sampling.
size_t sort_best_until(Candidates& candidates, double target) {
  size_t sorted = std::min(kFirstTopPGuess, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + sorted, candidates.end(), ranks_before);
  while (sorted < candidates.size() && total_weight(candidates, sorted) < target) {
    const size_t more = std::min(sorted * 7, candidates.size() - sorted);
    std::partial_sort(candidates.begin() + sorted, candidates.begin() + sorted + more, candidates.end(), ranks_before);
    sorted += more;
  }
  return sorted;
}

}  // namespace

void require_finite(std::span<const float> logits) {
  const auto bad = std::find_if_not(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); });
  if (bad == logits.end()) return;
  throw Error(fmt::format("non-finite logits: token {} of {} has logit {}", bad - logits.begin(), logits.size(), *bad));
}

int32_t argmax(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

Candidates all_candidates(std::span<const float> logits) {
  Candidates candidates(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) candidates[i] = {static_cast<int32_t>(i), logits[i]};
  return candidates;
}

Candidates keep_top_k(Candidates candidates, int64_t top_k) {
  if (top_k <= 0 || top_k >= static_cast<int64_t>(candidates.size())) return candidates;
  std::nth_element(candidates.begin(), candidates.begin() + (top_k - 1), candidates.end(), ranks_before);
  candidates.resize(top_k);
  std::sort(candidates.begin(), candidates.end(), ranks_before);
  return candidates;
}

Candidates softmax(Candidates candidates, double temperature) {
  const auto largest = std::max_element(candidates.begin(), candidates.end(),
                                        [](const Candidate& a, const Candidate& b) { return a.weight < b.weight; });
  const double maximum = largest->weight;
  double sum = 0;
  for (Candidate& candidate : candidates) {
    candidate.weight = std::exp((candidate.weight - maximum) / temperature);
    sum += candidate.weight;
  }
  for (Candidate& candidate : candidates) candidate.weight /= sum;
  return candidates;
}

Candidates keep_top_p(Candidates candidates, double top_p) {
  if (top_p >= 1) return candidates;
  const size_t sorted = sort_best_until(candidates, top_p);
  double sum = 0;
  size_t kept = 0;
  while (kept < sorted && sum < top_p) sum += candidates[kept++].weight;
  candidates.resize(kept);
  return candidates;
}

int32_t draw(const Candidates& candidates, double uniform) {
  const double target = uniform * total_weight(candidates, candidates.size());
  double sum = 0;
  const Candidate* last_possible = &candidates.front();
  for (const Candidate& candidate : candidates) {
    if (candidate.weight <= 0) continue;
    last_possible = &candidate;
    sum += candidate.weight;
    if (target < sum) break;
  }
  return last_possible->token;
}

int32_t sample_token(std::span<const float> logits, const SamplingParams& params, uint64_t seed, uint64_t index) {
  require_finite(logits);
  if (params.temperature == 0) return argmax(logits);
  Candidates candidates = keep_top_k(all_candidates(logits), params.top_k);
  candidates = keep_top_p(softmax(std::move(candidates), params.temperature), params.top_p);
  return draw(candidates, uniform_at(seed, index));
}

}  // namespace headway
