#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "headway/layers/rotary_embedding.h"

namespace headway {
namespace {

RopeConfig rope_of(RopeType type, double theta, double factor = 1.0, int64_t original = 0) {
  RopeConfig rope;
  rope.type = type;
  rope.theta = theta;
  rope.factor = factor;
  rope.original_max_position_embeddings = original;
  return rope;
}

AttentionBatch one_sequence(std::vector<int64_t> positions) {
  AttentionBatch batch;
  batch.query_starts = {0, static_cast<int64_t>(positions.size())};
  batch.context_lengths = {positions.back() + 1};
  batch.positions = std::move(positions);
  return batch;
}

// Fault case B28: the second frequency of theta 1e6 is 1e6^(-2/head_dim), never that of 10000.
TEST(RopeFrequencies, StandardIsAPowerOfTheta) {
  const auto frequencies = rope_inverse_frequencies(rope_of(RopeType::standard, 1e6), 16);
  ASSERT_EQ(frequencies.size(), 8u);
  for (int i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(frequencies[i], std::pow(1e6, -2.0 * i / 16));
}

TEST(RopeFrequencies, LinearDividesEveryFrequency) {
  const auto plain = rope_inverse_frequencies(rope_of(RopeType::standard, 1e4), 12);
  const auto linear = rope_inverse_frequencies(rope_of(RopeType::linear, 1e4, 3.0), 12);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_FLOAT_EQ(linear[i], plain[i] / 3.0f);
}

TEST(RopeFrequencies, DynamicEqualsStandardUpToTheOriginalContextAndGrowsThetaBeyond) {
  const RopeConfig rope = rope_of(RopeType::dynamic, 1e4, 2.0, 64);
  const auto plain = rope_inverse_frequencies(rope_of(RopeType::standard, 1e4), 16);
  const auto within = rope_inverse_frequencies(rope, 16, 64);
  const auto beyond = rope_inverse_frequencies(rope, 16, 128);
  const double grown = 1e4 * std::pow(2.0 * 128 / 64 - 1.0, 16.0 / 14.0);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_FLOAT_EQ(within[i], plain[i]);
    EXPECT_FLOAT_EQ(beyond[i], std::pow(grown, -2.0 * static_cast<double>(i) / 16));
  }
}

// Fault case D08.
TEST(RopeFrequencies, YarnInterpolatesTheSlowPairsAndScalesCosAndSin) {
  const RopeConfig rope = rope_of(RopeType::yarn, 1e6, 4.0, 32768);
  const auto plain = rope_inverse_frequencies(rope_of(RopeType::standard, 1e6), 128);
  const auto yarn = rope_inverse_frequencies(rope, 128);
  for (int i = 0; i < 24; ++i) EXPECT_NEAR(yarn[i] / plain[i], 1.0, 1e-6) << i;
  EXPECT_NEAR(yarn[24] / plain[24], 0.955882, 1e-5);
  EXPECT_NEAR(yarn[31] / plain[31], 0.647059, 1e-5);
  for (int i = 40; i < 64; ++i) EXPECT_NEAR(yarn[i] / plain[i], 0.25, 1e-6) << i;
  EXPECT_NEAR(rope_attention_factor(rope), 1.1386294, 1e-6);

  const RotaryAngles angles = RotaryEmbedding(rope, 128).angles(one_sequence({0}), c10::kCPU);
  EXPECT_NEAR(angles.cos_sin[0][0].item<float>(), 1.1386294f, 1e-6);
}

TEST(RopeFrequencies, YarnTakesGivenAttentionFactorsBeforeItsOwn) {
  RopeConfig rope = rope_of(RopeType::yarn, 1e6, 4.0, 32768);
  rope.mscale = 0.7;
  rope.mscale_all_dim = 0.9;
  const double expected = (0.1 * 0.7 * std::log(4.0) + 1) / (0.1 * 0.9 * std::log(4.0) + 1);
  EXPECT_NEAR(rope_attention_factor(rope), expected, 1e-12);
  rope.attention_factor = 1.5;
  EXPECT_EQ(rope_attention_factor(rope), 1.5);
}

// Fault case D06: angles are fp32 whatever the model's dtype; bf16 positions would give -0.0398 and -0.2680.
TEST(RotaryEmbedding, AnglesStayExactAtLatePositions) {
  const RotaryAngles angles =
      RotaryEmbedding(rope_of(RopeType::standard, 1e6), 16).angles(one_sequence({257, 15962}), c10::kCPU);
  EXPECT_NEAR(angles.cos_sin[angles.rows[0]][0].item<float>(), 0.8193, 4e-3);
  EXPECT_NEAR(angles.cos_sin[angles.rows[1]][0].item<float>(), -0.9080, 4e-3);

  at::Tensor heads = at::zeros({2, 1, 16}, at::kBFloat16);
  heads.select(2, 0).fill_(1.0);  // only the first half of pair 0: rotation leaves (cos, sin)
  RotaryEmbedding::rotate(heads, angles);
  EXPECT_NEAR(heads[0][0][0].item<float>(), 0.8193, 4e-3);
  EXPECT_NEAR(heads[1][0][0].item<float>(), -0.9080, 4e-3);
  EXPECT_NEAR(heads[0][0][8].item<float>(), std::sin(257.0), 4e-3);
}

TEST(RotaryEmbedding, TheTableGrowsWithoutChangingItsRows) {
  RotaryEmbedding rotary(rope_of(RopeType::standard, 1e4), 8);
  const at::Tensor early = rotary.angles(one_sequence({3}), c10::kCPU).cos_sin[3].clone();
  const RotaryAngles late = rotary.angles(one_sequence({3, 5000}), c10::kCPU);
  EXPECT_TRUE(late.cos_sin[3].equal(early));
  EXPECT_NEAR(late.cos_sin[5000][0].item<float>(), std::cos(5000.0), 1e-5);
}

TEST(RotaryEmbedding, DynamicAnglesOfASequenceDoNotDependOnItsNeighbours) {
  RotaryEmbedding rotary(rope_of(RopeType::dynamic, 1e4, 2.0, 64), 8);
  const at::Tensor alone = rotary.angles(one_sequence({40}), c10::kCPU).cos_sin;
  AttentionBatch both = one_sequence({40});
  both.positions = {40, 200};
  both.query_starts = {0, 1, 2};
  both.context_lengths = {41, 201};
  EXPECT_TRUE(rotary.angles(both, c10::kCPU).cos_sin[0].equal(alone[0]));
}

}  // namespace
}  // namespace headway
