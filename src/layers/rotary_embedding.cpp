#include "headway/layers/rotary_embedding.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/ops.h"

namespace headway {
namespace {

constexpr int64_t kFirstTableRows = 512;

void fill_row(float* row, const std::vector<float>& frequencies, int64_t position, float factor) {
  const size_t pairs = frequencies.size();
  for (size_t i = 0; i < pairs; ++i) {
    const float angle = static_cast<float>(position) * frequencies[i];
    row[i] = std::cos(angle) * factor;
    row[pairs + i] = std::sin(angle) * factor;
  }
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(RopeConfig rope, int64_t head_dim) : rope_(rope), head_dim_(head_dim) {}

RotaryAngles RotaryEmbedding::angles(const AttentionBatch& batch, c10::Device device) {
  return rope_.type == RopeType::dynamic ? dynamic_angles(batch, device) : table_angles(batch, device);
}

RotaryAngles RotaryEmbedding::table_angles(const AttentionBatch& batch, c10::Device device) {
  const int64_t needed =
      batch.positions.empty() ? 0 : *std::max_element(batch.positions.begin(), batch.positions.end()) + 1;
  const int64_t have = table_.defined() ? table_.size(0) : 0;
  if (needed > have || !table_.defined()) {
    const int64_t rows = std::max({needed, 2 * have, kFirstTableRows});
    const auto frequencies = rope_inverse_frequencies(rope_, head_dim_);
    const auto factor = static_cast<float>(rope_attention_factor(rope_));
    at::Tensor table = at::empty({rows, head_dim_}, at::kFloat);
    for (int64_t p = 0; p < rows; ++p) fill_row(table.data_ptr<float>() + p * head_dim_, frequencies, p, factor);
    table_ = table.to(device);
  }
  return {table_, batch.positions};
}

RotaryAngles RotaryEmbedding::dynamic_angles(const AttentionBatch& batch, c10::Device device) const {
  at::Tensor rows = at::empty({batch.num_tokens(), head_dim_}, at::kFloat);
  for (int64_t s = 0; s < batch.num_sequences(); ++s) {
    const auto frequencies = rope_inverse_frequencies(rope_, head_dim_, batch.context_lengths[s]);
    for (int64_t t = batch.query_starts[s]; t < batch.query_starts[s + 1]; ++t) {
      fill_row(rows.data_ptr<float>() + t * head_dim_, frequencies, batch.positions[t], 1.0f);
    }
  }
  std::vector<int64_t> identity(batch.num_tokens());
  std::iota(identity.begin(), identity.end(), 0);
  return {rows.to(device), identity};
}

void RotaryEmbedding::rotate(at::Tensor heads, const RotaryAngles& angles) {
  kernels::rotary_embedding(std::move(heads), angles.cos_sin, angles.rows);
}

}  // namespace headway
