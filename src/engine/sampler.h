#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headway/engine/sampling_params.h"

// The choice of a token from one row of logits, as a chain of small pure functions over candidates.
namespace headway {

/// A token that may be drawn. `weight` is its logit before `softmax` and its probability after.
struct Candidate {
  int32_t token = 0;
  double weight = 0;
};

using Candidates = std::vector<Candidate>;

/// Throws Error naming the first token whose logit is not finite.
void require_finite(std::span<const float> logits);

/// The token with the largest logit, the lowest of equals.
int32_t argmax(std::span<const float> logits);

/// Every token of the row, by id.
Candidates all_candidates(std::span<const float> logits);

/// The `top_k` candidates of largest weight, of equals those with the lowest ids. 0, -1 and sizes beyond the
/// vocabulary keep all.
Candidates keep_top_k(Candidates candidates, int64_t top_k);

/// Turns logits into the probabilities of softmax(logits / temperature), in double precision; the largest logit is
/// subtracted first, so no temperature above 0 overflows.
Candidates softmax(Candidates candidates, double temperature);

/// The smallest set of most probable candidates whose probabilities reach `top_p` together, most probable first.
/// Expects the output of `softmax`; 1 keeps all, untouched.
Candidates keep_top_p(Candidates candidates, double top_p);

/// The candidates that are at least `min_p` times as probable as the most probable one, as probabilities again.
/// Expects the output of `softmax`; 0 keeps all, untouched.
Candidates keep_min_p(Candidates candidates, double min_p);

/// The probabilities from which `params` draw, of the candidates that top_k, min_p and top_p leave. Needs a temperature
/// above 0.
Candidates distribution(std::span<const float> logits, const SamplingParams& params);

/// The candidate at `uniform`, in [0, 1), of the cumulative weights.
int32_t draw(const Candidates& candidates, double uniform);

/// The token that temperature, top_k, min_p and top_p choose from `logits` ([vocab]) as the `index`-th new one of a
/// request with this `seed`. Depends on its arguments alone, so a seeded request gives the same text whatever runs
/// beside it. A logit may be -infinity: that token is never chosen.
int32_t sample_token(std::span<const float> logits, const SamplingParams& params, uint64_t seed, uint64_t index);

}  // namespace headway
