#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "engine/philox.h"
#include "headway/base/error.h"

namespace headway {
namespace {

std::vector<int32_t> ids_of(const Candidates& candidates) {
  std::vector<int32_t> ids;
  for (const Candidate& candidate : candidates) ids.push_back(candidate.token);
  return ids;
}

std::map<int32_t, int> draws(const std::vector<float>& logits, const SamplingParams& params, int count) {
  std::map<int32_t, int> seen;
  for (int i = 0; i < count; ++i) ++seen[sample_token(logits, params, 77, i)];
  return seen;
}

std::string message_of(const SamplingParams& params) {
  try {
    params.validate();
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "";
}

// The known answers that come with the authors' implementation, Random123.
TEST(Philox, KnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformNumbersFillTheUnitInterval) {
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double value = uniform_at(5, i);
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.01);
  EXPECT_NE(uniform_at(5, 0), uniform_at(6, 0));
  EXPECT_NE(uniform_at(5, 0), uniform_at(5, uint64_t{1} << 32));
}

TEST(Greedy, TakesTheLowestOfEqualLogits) {
  EXPECT_EQ(argmax(std::vector<float>{-3, -1, -2, -1}), 1);
  EXPECT_EQ(argmax(std::vector<float>{-5, -4, -3, -2, -1}), 4);
  EXPECT_EQ(sample_token(std::vector<float>{2, 7, 7}, {}, 1, 0), 1);
  EXPECT_EQ(argmax(std::vector<float>{-1, -0.0f, 0.0f}), 1);
  EXPECT_EQ(argmax(std::vector<float>{-1, 0.0f, -0.0f}), 1);
}

TEST(Greedy, FindsTheLargestAnywhere) {
  const std::vector<float> values{-3e38f, -1.5f, -1e-40f, 0, 1e-40f, 2.5f, 3e38f};  // ascending
  for (size_t largest = 1; largest < values.size(); ++largest) {
    for (size_t place : {0, 1, 18, 36}) {
      std::vector<float> logits;
      for (size_t i = 0; i < 37; ++i) logits.push_back(values[i % largest]);
      logits[place] = values[largest];
      EXPECT_EQ(argmax(logits), static_cast<int32_t>(place)) << values[largest];
    }
  }
}

// Fault case D04: 11.0625 / 1e-5 is beyond half precision; here it is not even beyond a float's.
TEST(Temperature, TinyOnesPickTheLargestLogit) {
  const std::vector<float> logits{2.875, 11.0625, -2.4375};
  const Candidates probabilities = softmax(all_candidates(logits), 1e-5);
  EXPECT_EQ(probabilities[0].weight, 0.0);
  EXPECT_EQ(probabilities[1].weight, 1.0);
  EXPECT_EQ(probabilities[2].weight, 0.0);
  SamplingParams params;
  for (double temperature : {1e-5, 1e-300, std::numeric_limits<double>::denorm_min()}) {
    params.temperature = temperature;
    EXPECT_EQ(draws(logits, params, 50), (std::map<int32_t, int>{{1, 50}}));
  }
}

// Fault case D05.
TEST(Temperature, ZeroIsGreedyAndNonsenseIsRefused) {
  SamplingParams params;
  EXPECT_EQ(message_of(params), "");
  params.temperature = -1;
  EXPECT_NE(message_of(params).find("temperature is -1"), std::string::npos);
  params.temperature = std::nan("");
  EXPECT_NE(message_of(params).find("temperature is nan"), std::string::npos);
  params.temperature = std::numeric_limits<double>::infinity();
  EXPECT_NE(message_of(params).find("temperature is inf"), std::string::npos);
}

TEST(Temperature, DividesTheLogits) {
  const std::vector<float> logits{std::log(6.0f), std::log(3.0f), std::log(1.0f)};
  const Candidates at_one = softmax(all_candidates(logits), 1.0);
  EXPECT_NEAR(at_one[0].weight, 0.6, 1e-6);
  EXPECT_NEAR(at_one[1].weight, 0.3, 1e-6);
  const Candidates at_half = softmax(all_candidates(logits), 0.5);
  EXPECT_NEAR(at_half[0].weight, 36.0 / 46, 1e-6);
  EXPECT_NEAR(at_half[2].weight, 1.0 / 46, 1e-6);
}

// Fault case E23.
TEST(TopK, ZeroMinusOneAndMoreThanTheVocabularyAreOff) {
  const std::vector<float> flat{1, 1, 1, 1};
  SamplingParams params;
  params.temperature = 1;
  for (int64_t top_k : {0, -1, 10000}) {
    params.top_k = top_k;
    EXPECT_EQ(message_of(params), "");
    EXPECT_EQ(draws(flat, params, 200).size(), 4u) << top_k;
  }
  params.top_k = 1;
  EXPECT_EQ(draws(flat, params, 200), (std::map<int32_t, int>{{0, 200}}));
  params.top_k = -2;
  EXPECT_NE(message_of(params).find("top_k is -2"), std::string::npos);
}

TEST(TopK, KeepsTheLargestAndTheLowestIdsOfEquals) {
  const std::vector<float> logits{1, 5, 3, 5, 3, 3};
  EXPECT_EQ(ids_of(keep_top_k(all_candidates(logits), 2)), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(ids_of(keep_top_k(all_candidates(logits), 4)), (std::vector<int32_t>{1, 3, 2, 4}));
}

TEST(TopP, KeepsTheSmallestSetThatReachesIt) {
  const Candidates candidates{{0, 0.1}, {1, 0.6}, {2, 0.3}};
  EXPECT_EQ(ids_of(keep_top_p(candidates, 0.5)), (std::vector<int32_t>{1}));
  EXPECT_EQ(ids_of(keep_top_p(candidates, 0.7)), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(ids_of(keep_top_p(candidates, 0.95)), (std::vector<int32_t>{1, 2, 0}));
  EXPECT_EQ(ids_of(keep_top_p(candidates, 1.0)), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(ids_of(keep_top_p(candidates, 1e-9)), (std::vector<int32_t>{1}));
}

TEST(TopP, IsExactBeyondTheFirstSortedCandidates) {
  Candidates candidates;  // probabilities i / sum, so the best are the last
  const int count = 1001;
  for (int i = 0; i < count; ++i) candidates.push_back({i, i / (count * (count - 1) / 2.0)});
  const Candidates kept = keep_top_p(candidates, 0.9);
  double sum = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i].token, count - 1 - static_cast<int>(i));
    sum += kept[i].weight;
  }
  EXPECT_GE(sum, 0.9);
  EXPECT_LT(sum - kept.back().weight, 0.9);
}

TEST(TopP, IsRefusedOutsideOfZeroToOne) {
  SamplingParams params;
  for (double top_p : {0.0, -0.5, 1.5, std::nan("")}) {
    params.top_p = top_p;
    EXPECT_NE(message_of(params).find("top_p is"), std::string::npos) << top_p;
  }
  params.top_p = 1;
  params.max_tokens = 0;
  EXPECT_NE(message_of(params).find("max_tokens is 0"), std::string::npos);
}

TEST(Draw, FollowsTheProbabilities) {
  const std::vector<float> logits{std::log(6.0f), std::log(3.0f), std::log(1.0f)};
  SamplingParams params;
  params.temperature = 1;
  const auto seen = draws(logits, params, 20000);
  EXPECT_NEAR(seen.at(0), 12000, 300);
  EXPECT_NEAR(seen.at(1), 6000, 300);
  EXPECT_NEAR(seen.at(2), 2000, 200);
}

TEST(Draw, NeverTakesACandidateWithoutWeight) {
  const Candidates candidates{{4, 0.0}, {5, 0.5}, {6, 0.5}, {7, 0.0}};
  EXPECT_EQ(draw(candidates, 0.0), 5);
  EXPECT_EQ(draw(candidates, 0.4999), 5);
  EXPECT_EQ(draw(candidates, 0.5), 6);
  EXPECT_EQ(draw(candidates, std::nextafter(1.0, 0.0)), 6);
}

TEST(Seed, DecidesTheWholeSequence) {
  const std::vector<float> flat(50, 0.0f);
  SamplingParams params;
  params.temperature = 0.8;
  std::vector<int32_t> forwards, backwards, other;
  for (int i = 0; i < 32; ++i) forwards.push_back(sample_token(flat, params, 42, i));
  for (int i = 31; i >= 0; --i) backwards.insert(backwards.begin(), sample_token(flat, params, 42, i));
  for (int i = 0; i < 32; ++i) other.push_back(sample_token(flat, params, 43, i));
  EXPECT_EQ(forwards, backwards);
  EXPECT_NE(forwards, other);
  EXPECT_GT(std::set<int32_t>(forwards.begin(), forwards.end()).size(), 10u);
}

// Fault case D02: never a token from logits that are no numbers.
TEST(NonFiniteLogits, AreAnErrorThatNamesTheToken) {
  const float nan = std::nanf("");
  const float infinity = std::numeric_limits<float>::infinity();
  for (float bad : {nan, infinity, -infinity}) {
    const std::vector<float> logits{1, 2, bad, 4};
    for (double temperature : {0.0, 1.0}) {
      SamplingParams params;
      params.temperature = temperature;
      try {
        require_finite(logits);
        FAIL() << bad;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("non-finite logits: token 2 of 4"), std::string::npos);
      }
    }
  }
}

}  // namespace
}  // namespace headway
