#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "distributed/support/parallel_test.h"
#include "e2e/engine_runs.h"
#include "e2e/reference.h"

// Models in fp16 whose values lie near or beyond its end, run by the engine on all ranks of the launch.
namespace headway::testing {
namespace {

SamplingParams sampling(double temperature, uint64_t seed, int64_t max_tokens) {
  SamplingParams params;
  params.temperature = temperature;
  params.seed = seed;
  params.max_tokens = max_tokens;
  return params;
}

// Fault case D02: an MLP whose output reaches 70000. In fp16 the request ends with an error that says why, and never as
// 16 times the token with id 0; where 70000 can be held it is served.
TEST(HalfPrecision, AnOverflowEndsTheRequestWithAnError) {
  const auto long_prompt = read_reference("fp16-overflow").long_prompt;
  const EngineRequest prompt{{long_prompt.begin(), long_prompt.end()}, sampling(0, 0, 16)};
  const auto overflown = run_engine("fp16-overflow", {}, {prompt});
  for (const EngineResult& result : overflown) {
    EXPECT_EQ(result.reason, FinishReason::error);
    EXPECT_THAT(result.error, ::testing::HasSubstr("non-finite logits"));
    EXPECT_LT(result.tokens.size(), 16u);
  }
  for (const DType wide : {DType::F32, DType::BF16}) {
    for (const EngineResult& result : run_engine("fp16-overflow", wide, {prompt})) {
      EXPECT_EQ(result.reason, FinishReason::length) << result.error;
      EXPECT_EQ(result.tokens.size(), 16u);
    }
  }
}

// Fault case D04: logits 2.875, 11.0625 and -2.4375 at a temperature of 1e-5, beside other requests.
TEST(HalfPrecision, ATinyTemperatureTakesTheLikeliestTokenAndHarmsNoOther) {
  const EngineRequest tiny{{2, 0}, sampling(1e-5, 1, 20)};
  const std::vector<EngineRequest> others{{{1}, sampling(10, 2, 24)}, {{0, 1, 2}, sampling(10, 3, 24)}};
  const auto alone = run_engine("fp16-fixed-logits", {}, others);
  const auto together = run_engine("fp16-fixed-logits", {}, {others[0], tiny, others[1]});
  if (together.empty()) return;  // a rank that follows
  EXPECT_EQ(together[1], (EngineResult{std::vector<int32_t>(20, 1), FinishReason::length, ""}));
  EXPECT_EQ(together[0], alone[0]);
  EXPECT_EQ(together[2], alone[1]);
  for (const EngineResult& other : alone) {
    EXPECT_EQ(other.reason, FinishReason::length);
    EXPECT_THAT(other.tokens, ::testing::IsSupersetOf({0, 1, 2}));
  }
}

}  // namespace
}  // namespace headway::testing
