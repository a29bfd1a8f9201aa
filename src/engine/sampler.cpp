#include "engine/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/philox.h"
#include "headway/base/error.h"

namespace headway {
namespace {

constexpr size_t kFirstTopPGuess = 64;
constexpr uint32_t kExponent = 0x7f800000;  // all of these bits are set in infinities and NaNs alone

/// An integer for each finite float, in the order of the floats: integers are compared many at a time.
int32_t order_of(float logit) {
  const auto bits = std::bit_cast<int32_t>(logit);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

float logit_at(int32_t order) {
  return std::bit_cast<float>(order ^ ((order >> 31) & 0x7fffffff));
}

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
  size_t sorted = 0;
  for (size_t more = kFirstTopPGuess; sorted < candidates.size() && total_weight(candidates, sorted) < target;
       more = 7 * sorted) {
    const auto begin = candidates.begin() + sorted;
    const auto end = begin + std::min(more, candidates.size() - sorted);
    if (end != candidates.end()) std::nth_element(begin, end, candidates.end(), ranks_before);
    std::sort(begin, end, ranks_before);
    sorted = end - candidates.begin();
  }
  return sorted;
}

}  // namespace

void require_finite(std::span<const float> logits) {
  bool all_finite = true;
  for (const float logit : logits) all_finite &= (std::bit_cast<uint32_t>(logit) & kExponent) != kExponent;
  if (all_finite) return;
  const auto bad = std::find_if_not(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); });
  throw Error(fmt::format("non-finite logits: token {} of {} has logit {}", bad - logits.begin(), logits.size(), *bad));
}

int32_t argmax(std::span<const float> logits) {
  int32_t largest = std::numeric_limits<int32_t>::min();
  for (const float logit : logits) largest = std::max(largest, order_of(logit));
  // Found by value, so that 0 and -0, which have two places in that order, count as equal.
  const auto first = std::find(logits.begin(), logits.end(), logit_at(largest));
  return static_cast<int32_t>(first - logits.begin());
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

Candidates keep_min_p(Candidates candidates, double min_p) {
  if (min_p <= 0) return candidates;
  double largest = 0;
  for (const Candidate& candidate : candidates) largest = std::max(largest, candidate.weight);
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.weight < min_p * largest; });
  const double sum = total_weight(candidates, candidates.size());
  for (Candidate& candidate : candidates) candidate.weight /= sum;
  return candidates;
}

Candidates distribution(std::span<const float> logits, const SamplingParams& params) {
  Candidates candidates = keep_top_k(all_candidates(logits), params.top_k);
  candidates = keep_min_p(softmax(std::move(candidates), params.temperature), params.min_p);
  return keep_top_p(std::move(candidates), params.top_p);
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
  if (params.temperature == 0) return argmax(logits);
  return draw(distribution(logits, params), uniform_at(seed, index));
}

}  // namespace headway
