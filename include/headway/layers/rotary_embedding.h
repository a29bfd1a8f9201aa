#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "headway/config/model_config.h"
#include "headway/kernels/attention_batch.h"

namespace headway {

/// Inverse frequencies of the rotary pairs, [head_dim / 2], radians per position. `context_length` matters for the
/// dynamic type alone. Formulas: RoPE https://arxiv.org/abs/2104.09864; linear: frequencies / factor; dynamic: theta
/// grown with the context, as in Hugging Face's "dynamic"; YaRN https://arxiv.org/abs/2309.00071, section 3.2.
std::vector<float> rope_inverse_frequencies(const RopeConfig& rope, int64_t head_dim, int64_t context_length = 0);

/// What cosines and sines are multiplied by: 1, or YaRN's attention factor (0.1 ln(factor) + 1 unless given).
double rope_attention_factor(const RopeConfig& rope);

/// The rotation of every token of one forward: `cos_sin` [rows, head_dim] fp32, cosines in the first half, and the row
/// of each token.
struct RotaryAngles {
  at::Tensor cos_sin;
  std::vector<int64_t> rows;
};

/// Rotary position embedding; angles are computed in fp32 whatever the model's dtype.
class RotaryEmbedding {
 public:
  RotaryEmbedding(RopeConfig rope, int64_t head_dim);

  /// The angles for a batch, on `device`; computed once per forward and shared by the layers. With the dynamic type a
  /// sequence's angles follow from its own context length, so they do not depend on its neighbours in the batch.
  RotaryAngles angles(const AttentionBatch& batch, c10::Device device);

  /// Rotates heads [tokens, n, head_dim] in place.
  static void rotate(at::Tensor heads, const RotaryAngles& angles);

 private:
  RotaryAngles table_angles(const AttentionBatch& batch, c10::Device device);
  RotaryAngles dynamic_angles(const AttentionBatch& batch, c10::Device device) const;

  RopeConfig rope_;
  int64_t head_dim_;
  at::Tensor table_;  ///< [positions so far, head_dim], grown as positions come up
};

}  // namespace headway
