#include <algorithm>
#include <cmath>
#include <numbers>

#include "headway/layers/rotary_embedding.h"

namespace headway {
namespace {

double plain_frequency(double theta, int64_t pair, int64_t head_dim) {
  return std::pow(theta, -2.0 * static_cast<double>(pair) / static_cast<double>(head_dim));
}

/// theta' = theta * (factor * length / original - (factor - 1)) ^ (d / (d - 2)) beyond the original context.
double dynamic_theta(const RopeConfig& rope, int64_t head_dim, int64_t context_length) {
  const auto original = static_cast<double>(rope.original_max_position_embeddings);
  const double length = std::max(static_cast<double>(context_length), original);
  const double dim = static_cast<double>(head_dim);
  return rope.theta * std::pow(rope.factor * length / original - (rope.factor - 1.0), dim / (dim - 2.0));
}

/// The pair index whose wavelength makes `rotations` turns over the original context.
double yarn_correction_pair(const RopeConfig& rope, int64_t head_dim, double rotations) {
  const auto original = static_cast<double>(rope.original_max_position_embeddings);
  return static_cast<double>(head_dim) * std::log(original / (rotations * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(rope.theta));
}

/// How much of a pair is interpolated: 0 below `low`, 1 above `high`, linear between.
double yarn_ramp(int64_t pair, double low, double high) {
  if (low == high) high += 0.001;  // a step, without dividing by zero
  return std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
}

struct YarnRange {
  double low;
  double high;
};

YarnRange yarn_range(const RopeConfig& rope, int64_t head_dim) {
  double low = yarn_correction_pair(rope, head_dim, rope.beta_fast);
  double high = yarn_correction_pair(rope, head_dim, rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  return {std::max(low, 0.0), std::min(high, static_cast<double>(head_dim - 1))};
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

}  // namespace

std::vector<float> rope_inverse_frequencies(const RopeConfig& rope, int64_t head_dim, int64_t context_length) {
  const double theta = rope.type == RopeType::dynamic ? dynamic_theta(rope, head_dim, context_length) : rope.theta;
  const YarnRange range = rope.type == RopeType::yarn ? yarn_range(rope, head_dim) : YarnRange{};
  std::vector<float> frequencies;
  for (int64_t pair = 0; pair < head_dim / 2; ++pair) {
    double frequency = plain_frequency(theta, pair, head_dim);
    if (rope.type == RopeType::linear) frequency /= rope.factor;
    if (rope.type == RopeType::yarn) {
      const double interpolated = yarn_ramp(pair, range.low, range.high);
      frequency = frequency / rope.factor * interpolated + frequency * (1.0 - interpolated);
    }
    frequencies.push_back(static_cast<float>(frequency));
  }
  return frequencies;
}

double rope_attention_factor(const RopeConfig& rope) {
  if (rope.type != RopeType::yarn) return 1.0;
  if (rope.attention_factor) return *rope.attention_factor;
  if (rope.mscale && rope.mscale_all_dim) {
    return yarn_mscale(rope.factor, *rope.mscale) / yarn_mscale(rope.factor, *rope.mscale_all_dim);
  }
  return yarn_mscale(rope.factor, 1.0);
}

}  // namespace headway
