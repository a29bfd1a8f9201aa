#include "engine/logit_adjustment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/logprobs.h"
#include "engine/sampler.h"
#include "headway/base/error.h"
#include "support/expect_error.h"

namespace headway {
namespace {

using test::error_of;
using test::HasAll;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const std::vector<float> kLogits{2.5, -1.25, 0.75, 3, 1.5, -0.5, 2, 0.25};

struct Said {
  std::vector<int32_t> prompt;
  std::vector<int32_t> text;
  std::vector<int32_t> ending;
};

std::vector<float> adjusted(std::vector<float> logits, const SamplingParams& params, const Said& said) {
  const TokenHistory history{said.prompt, said.text, said.ending};
  adjust_logits(logits, params, history);
  return logits;
}

// Fault case E26: each penalty once, and only repetition_penalty looks at the prompt.
TEST(Penalties, OfTheFaultCase) {
  const Said said{{0}, {1}, {}};
  SamplingParams params;
  params.repetition_penalty = 2;
  EXPECT_EQ(adjusted({2.0, -1.5, 1.0}, params, said), (std::vector<float>{1.0, -3.0, 1.0}));
  params = {};
  params.presence_penalty = 0.5;
  EXPECT_EQ(adjusted({2.0, -1.5, 1.0}, params, said), (std::vector<float>{2.0, -2.0, 1.0}));
}

// What transformers' RepetitionPenaltyLogitsProcessor(1.3) makes of these logits.
TEST(Penalties, RepetitionIsThatOfTransformers) {
  SamplingParams params;
  params.repetition_penalty = 1.3;
  EXPECT_THAT(adjusted(kLogits, params, {{3, 1}, {6, 3}, {}}),
              Pointwise(FloatNear(1e-6), {2.5, -1.625, 0.75, 2.30769231, 1.5, -0.5, 1.53846154, 0.25}));
}

TEST(Penalties, FrequencyCountsWhatPresenceOnlySees) {
  SamplingParams params;
  params.frequency_penalty = 0.25;
  params.presence_penalty = -1;
  EXPECT_EQ(adjusted(kLogits, params, {{3, 3, 3}, {6, 0, 6, 6}, {}}),
            (std::vector<float>{3.25, -1.25, 0.75, 3, 1.5, -0.5, 2.25, 0.25}));
}

TEST(Bias, IsAddedBeforeThePenalties) {
  SamplingParams params;
  params.logit_bias = {{1, 2.25}, {7, -100}};
  params.repetition_penalty = 2;
  EXPECT_EQ(adjusted(kLogits, params, {{1}, {}, {}}), (std::vector<float>{2.5, 0.5, 0.75, 3, 1.5, -0.5, 2, -99.75}));
}

TEST(MinTokens, MasksWhatWouldEndTheTextUntilItIsLongEnough) {
  SamplingParams params;
  params.min_tokens = 2;
  const std::vector<int32_t> ending{3, 151643};  // a config may name an id beyond the vocabulary
  for (const auto& text : {std::vector<int32_t>{}, std::vector<int32_t>{4}}) {
    const std::vector<float> logits = adjusted(kLogits, params, {{1}, text, ending});
    EXPECT_EQ(logits, (std::vector<float>{2.5, -1.25, 0.75, -kInfinity, 1.5, -0.5, 2, 0.25}));
    EXPECT_EQ(argmax(logits), 0);
    params.temperature = 5;
    for (uint64_t i = 0; i < 200; ++i) EXPECT_NE(sample_token(logits, params, 9, i), 3);
  }
  EXPECT_EQ(adjusted(kLogits, params, {{1}, {4, 5}, ending}), kLogits);
}

TEST(Adjustment, IsNotAskedForByDefault) {
  const TokenHistory history{};
  SamplingParams params;
  EXPECT_FALSE(adjusts_logits(params, history));
  params.min_tokens = 1;
  EXPECT_TRUE(adjusts_logits(params, history));
  for (const auto set :
       {&SamplingParams::presence_penalty, &SamplingParams::frequency_penalty, &SamplingParams::repetition_penalty}) {
    params = {};
    params.*set = 0.5;
    EXPECT_TRUE(adjusts_logits(params, history));
  }
  params = {};
  params.logit_bias = {{0, 1.0}};
  EXPECT_TRUE(adjusts_logits(params, history));
}

void expect_distribution(const SamplingParams& params, const std::vector<float>& logits,
                         const std::vector<double>& expected) {
  std::vector<double> probabilities(expected.size(), 0.0);
  for (const Candidate& candidate : distribution(logits, params)) probabilities[candidate.token] = candidate.weight;
  double sum = 0;
  for (const double probability : probabilities) sum += probability;
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(probabilities[i] / sum, expected[i], 1e-7) << i;
}

// The probabilities that transformers' warpers leave: temperature, top-k, min-p, top-p in this order.
TEST(Distribution, IsThatOfTransformers) {
  SamplingParams params;
  params.temperature = 0.7;
  params.min_p = 0.2;
  expect_distribution(params, kLogits, {0.28310417, 0, 0, 0.57830455, 0, 0, 0.13859128, 0});
  params = {};
  params.repetition_penalty = 1.3;
  params.temperature = 0.9;
  params.top_k = 6;
  params.min_p = 0.1;
  params.top_p = 0.85;
  expect_distribution(params, adjusted(kLogits, params, {{3, 1}, {6}, {}}),
                      {0.40316572, 0, 0, 0.32560092, 0.13271933, 0, 0.13851403, 0});
}

TEST(MinP, OneKeepsTheLargestAndItsEquals) {
  const Candidates kept = keep_min_p({{0, 0.4}, {1, 0.2}, {2, 0.4}}, 1);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].token, 0);
  EXPECT_EQ(kept[1].token, 2);
  EXPECT_EQ(kept[1].weight, 0.5);
}

// Fault case D16: what top_p leaves out still has its log-probability.
TEST(Logprobs, AreTheModelsOwn) {
  const std::vector<float> logits{std::log(0.6f), std::log(0.3f), std::log(0.1f)};
  SamplingParams params;
  params.temperature = 1;
  params.top_p = 0.5;
  const int32_t token = sample_token(logits, params, 5, 0);
  EXPECT_EQ(token, 0);
  const TokenLogprobs result = logprobs_of(logits, token, 3);
  EXPECT_NEAR(result.chosen.logprob, -0.5108, 5e-5);
  ASSERT_EQ(result.top.size(), 3u);
  EXPECT_NEAR(result.top[0].logprob, -0.5108, 5e-5);
  EXPECT_NEAR(result.top[1].logprob, -1.2040, 5e-5);
  EXPECT_NEAR(result.top[2].logprob, -2.3026, 5e-5);
}

// The values of torch.log_softmax.
TEST(Logprobs, AreThoseOfTorchWithRanks) {
  const TokenLogprobs result = logprobs_of(kLogits, 5, 3);
  EXPECT_NEAR(result.chosen.logprob, -4.38017803, 1e-8);
  EXPECT_EQ(result.chosen.rank, 7);
  const std::vector<std::pair<int32_t, double>> top{{3, -0.88017803}, {0, -1.38017803}, {6, -1.88017803}};
  for (size_t i = 0; i < top.size(); ++i) {
    EXPECT_EQ(result.top[i].token, top[i].first);
    EXPECT_NEAR(result.top[i].logprob, top[i].second, 1e-8);
    EXPECT_EQ(result.top[i].rank, static_cast<int64_t>(i) + 1);
  }
  EXPECT_TRUE(logprobs_of(kLogits, 5, 0).top.empty());
  EXPECT_EQ(logprobs_of(kLogits, 5, 20).top.size(), 8u);
  EXPECT_NEAR(logprobs_of(std::vector<float>{3e38f, -3e38f}, 0, 0).chosen.logprob, 0, 1e-12);
}

TEST(SamplingParams, NamesWhatIsOutOfRange) {
  const auto message = [](auto change) {
    SamplingParams params;
    change(params);
    return error_of<ArgumentError>([&] { params.validate(320); });
  };
  EXPECT_THAT(message([](auto& p) { p.min_p = 1.5; }), HasAll("min_p is 1.5"));
  EXPECT_THAT(message([](auto& p) { p.min_p = std::nan(""); }), HasAll("min_p is nan"));
  EXPECT_THAT(message([](auto& p) { p.repetition_penalty = 0; }), HasAll("repetition_penalty is 0"));
  EXPECT_THAT(message([](auto& p) { p.presence_penalty = -2.5; }), HasAll("presence_penalty is -2.5", "-2 to 2"));
  EXPECT_THAT(message([](auto& p) { p.frequency_penalty = 3; }), HasAll("frequency_penalty is 3"));
  EXPECT_THAT(message([](auto& p) { p.logit_bias = {{4, 101.0}}; }), HasAll("logit_bias of token 4 is 101"));
  EXPECT_THAT(message([](auto& p) { p.min_tokens = 17; }), HasAll("min_tokens is 17", "16"));
  EXPECT_THAT(message([](auto& p) { p.logprobs = 21; }), HasAll("logprobs is 21", "20"));
  EXPECT_THAT(message([](auto& p) { p.prompt_logprobs = -1; }), HasAll("prompt_logprobs is -1"));
  EXPECT_THAT(message([](auto& p) { p.stop_token_ids = {7, 320}; }), HasAll("stop_token_ids", "320"));
}

// Fault case E25.
TEST(SamplingParams, BiasOfATokenOutsideOfTheVocabularyIsRefused) {
  SamplingParams params;
  for (const int32_t token : {320, -1}) {
    params.logit_bias = {{token, 1.0}};
    EXPECT_THAT(error_of<ArgumentError>([&] { params.validate(320); }),
                HasAll("logit_bias", token == -1 ? "-1" : "320"));
  }
  params.logit_bias = {{319, 1.0}};
  params.validate(320);
}

}  // namespace
}  // namespace headway
