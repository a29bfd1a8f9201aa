#include "unit/kernels/reference.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

namespace headway::kernels::reference {
namespace {

at::Tensor in_double(const at::Tensor& tensor) {
  return tensor.to(at::kCPU, at::kDouble).contiguous();
}

void attend(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values, const AttentionOptions& options,
            int64_t token, int64_t head, int64_t kv_head, at::Tensor& output) {
  const auto query = q.accessor<double, 3>()[token][head];
  const auto key = keys.accessor<double, 3>();
  const auto value = values.accessor<double, 3>();
  const int64_t last = keys.size(0) - q.size(0) + token;
  const int64_t first = options.sliding_window ? std::max<int64_t>(0, last - *options.sliding_window + 1) : 0;
  std::vector<double> scores;
  for (int64_t t = first; t <= last; ++t) {
    double score = 0;
    for (int64_t d = 0; d < q.size(2); ++d) score += query[d] * key[t][kv_head][d];
    scores.push_back(score * options.scale);
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  auto result = output.accessor<double, 3>()[token][head];
  for (int64_t t = first; t <= last; ++t) {
    for (int64_t d = 0; d < q.size(2); ++d) result[d] += scores[t - first] / sum * value[t][kv_head][d];
  }
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor inputs = in_double(x), weights = in_double(weight);
  at::Tensor output = at::zeros({x.size(0), weight.size(0)}, at::kDouble);
  const auto in = inputs.accessor<double, 2>();
  const auto w = weights.accessor<double, 2>();
  auto y = output.accessor<double, 2>();
  for (int64_t m = 0; m < x.size(0); ++m) {
    for (int64_t n = 0; n < weight.size(0); ++n) {
      for (int64_t k = 0; k < x.size(1); ++k) y[m][n] += in[m][k] * w[n][k];
    }
  }
  return bias.defined() ? output.add_(in_double(bias)) : output;
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  at::Tensor output = in_double(x).clone();
  const at::Tensor weights = in_double(weight);
  auto y = output.accessor<double, 2>();
  for (int64_t m = 0; m < x.size(0); ++m) {
    double sum = 0;
    for (int64_t n = 0; n < x.size(1); ++n) sum += y[m][n] * y[m][n];
    const double norm = std::sqrt(sum / static_cast<double>(x.size(1)) + eps);
    for (int64_t n = 0; n < x.size(1); ++n) y[m][n] = y[m][n] / norm * weights.accessor<double, 1>()[n];
  }
  return output;
}

at::Tensor silu_and_mul(const at::Tensor& gate_up) {
  const at::Tensor input = in_double(gate_up);
  const auto in = input.accessor<double, 2>();
  const int64_t n = gate_up.size(1) / 2;
  at::Tensor output = at::empty({gate_up.size(0), n}, at::kDouble);
  auto y = output.accessor<double, 2>();
  for (int64_t m = 0; m < gate_up.size(0); ++m) {
    for (int64_t i = 0; i < n; ++i) y[m][i] = in[m][i] / (1.0 + std::exp(-in[m][i])) * in[m][n + i];
  }
  return output;
}

at::Tensor rotary_embedding(const at::Tensor& heads, const at::Tensor& cos_sin, const std::vector<int64_t>& positions) {
  const at::Tensor input = in_double(heads), table = in_double(cos_sin);
  at::Tensor output = input.clone();
  const auto in = input.accessor<double, 3>();
  auto y = output.accessor<double, 3>();
  const int64_t half = heads.size(2) / 2;
  for (int64_t m = 0; m < heads.size(0); ++m) {
    const auto row = table.accessor<double, 2>()[positions[m]];
    for (int64_t h = 0; h < heads.size(1); ++h) {
      for (int64_t i = 0; i < half; ++i) {
        y[m][h][i] = in[m][h][i] * row[i] - in[m][h][half + i] * row[half + i];
        y[m][h][half + i] = in[m][h][half + i] * row[i] + in[m][h][i] * row[half + i];
      }
    }
  }
  return output;
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                     const std::vector<HeadRun>& runs, const AttentionOptions& options) {
  const at::Tensor query = in_double(q), key = in_double(keys), value = in_double(values);
  at::Tensor output = at::zeros(q.sizes(), at::kDouble);
  for (int64_t token = 0; token < q.size(0); ++token) {
    for (const HeadRun& run : runs) {
      for (int64_t head = run.q_heads.begin; head < run.q_heads.end; ++head) {
        attend(query, key, value, options, token, head, run.kv_head, output);
      }
    }
  }
  return output;
}

}  // namespace headway::kernels::reference
