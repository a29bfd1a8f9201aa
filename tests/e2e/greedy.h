#pragma once

#include <cstdint>
#include <vector>

#include "headway/models/causal_lm.h"

namespace headway::testing {

/// What greedy decoding chose, and the log-probability of each choice.
struct GreedyRun {
  std::vector<int64_t> tokens;
  std::vector<double> logprobs;
};

/// Decodes all prompts together, `new_tokens` each, one forward a step.
std::vector<GreedyRun> decode_greedily(CausalLM& model, const std::vector<std::vector<int64_t>>& prompts,
                                       int64_t new_tokens);

}  // namespace headway::testing
