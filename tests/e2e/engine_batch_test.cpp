#include <gtest/gtest.h>

#include "e2e/engine_runs.h"
#include "e2e/reference.h"

// Whole models under load: what else is in the batch changes no token.
namespace headway::testing {
namespace {

EngineRequest greedy(const std::vector<int64_t>& prompt) {
  EngineRequest request{{prompt.begin(), prompt.end()}, {}};
  request.params.max_tokens = 64;
  return request;
}

/// A prompt of 1 to 45 tokens that has nothing to do with others, sampled.
EngineRequest unrelated(int number) {
  EngineRequest request;
  for (int i = 0; i < number; ++i) request.tokens.push_back((i * i * 17 + number * 53 + 11) % 320);
  request.params.temperature = number % 3 * 0.5;
  request.params.seed = number;
  request.params.max_tokens = 20 + number;
  return request;
}

// Fault case D11: one prompt alone five times, then beside 45 unrelated requests; the tokens are transformers'.
TEST(EngineBatch, NeighboursChangeNoGreedyToken) {
  const Reference reference = read_reference("q12kv2-tied");
  for (size_t p = 0; p < reference.prompts.size(); ++p) {
    const EngineResult expected{{reference.greedy[p].begin(), reference.greedy[p].end()}, FinishReason::length, ""};
    const EngineRequest request = greedy(reference.prompts[p]);
    for (int time = 0; time < 5; ++time) {
      for (const EngineResult& alone : run_engine("q12kv2-tied", {}, {request})) EXPECT_EQ(alone, expected) << p;
    }
    std::vector<EngineRequest> crowd;
    for (int number = 1; number <= 45; ++number) crowd.push_back(unrelated(number));
    crowd.insert(crowd.begin() + 9 * static_cast<int64_t>(p), request);
    const auto results = run_engine("q12kv2-tied", {}, crowd);
    if (results.empty()) continue;  // a rank that follows
    EXPECT_EQ(results[9 * p], expected) << p;
    EXPECT_EQ(results.size(), 46u);
  }
}

}  // namespace
}  // namespace headway::testing
