#include "cli/verify_compare.h"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace headway {
namespace {

constexpr double kTiny = 1e-30;

/// NaN counts as larger than any number.
bool larger(double value, double largest) {
  return std::isnan(value) || value > largest;
}

/// By how much the best logit of a row leads; the same in log-probabilities.
double lead(const at::Tensor& row) {
  const at::Tensor best = std::get<0>(row.topk(2)).squeeze(0);
  return best[0].item<double>() - best[1].item<double>();
}

}  // namespace

std::string dtype_name(c10::ScalarType dtype) {
  if (dtype == at::kFloat) return "fp32";
  return dtype == at::kBFloat16 ? "bf16" : "fp16";
}

VerifyBounds bounds_for(c10::ScalarType dtype) {
  if (dtype == at::kFloat) return {.same_tokens = true, .relative_logit = 1e-3, .relative_hidden = 1e-3};
  const bool bf16 = dtype == at::kBFloat16;  // 8 bits of precision; fp16 has 11
  return {.same_tokens = false,
          .relative_logit = bf16 ? 1.0 / 64 : 1.0 / 512,
          .least_logprob = 0.05,
          .relative_hidden = bf16 ? 0.5 : 0.1};
}

LogitsComparison::LogitsComparison(const LogitsTrace& baseline, c10::ScalarType dtype) : baseline_(baseline) {
  found_.dtype = dtype_name(dtype);
  found_.bounds = bounds_for(dtype);
}

void LogitsComparison::add_logits(int64_t prompt, int64_t first_row, const at::Tensor& logits) {
  const at::Tensor expected = baseline_.logits(prompt, {first_row, first_row + logits.size(0)});
  compare_logits(prompt, first_row, logits, expected);
  compare_logprobs(prompt, first_row, logits, expected);
}

void LogitsComparison::compare_logits(int64_t prompt, int64_t first_row, const at::Tensor& actual,
                                      const at::Tensor& expected) {
  const at::Tensor difference = actual.sub(expected).abs();
  const auto [largest, tokens] = difference.max(1);
  const at::Tensor relative = largest.div(expected.abs().amax(1).clamp_min(kTiny));
  const auto row = relative.argmax().item<int64_t>();
  const auto value = relative[row].item<double>();
  if (!larger(value, found_.logit.relative)) return;
  found_.logit = {value, largest[row].item<double>(), prompt, first_row + row, tokens[row].item<int64_t>()};
}

/// Of the baseline's greedy tokens, as far as their rows are among these.
void LogitsComparison::compare_logprobs(int64_t prompt, int64_t first_row, const at::Tensor& actual,
                                        const at::Tensor& expected) {
  const TracedPrompt& traced = baseline_.prompts()[prompt];
  const int64_t skipped = std::max(int64_t{0}, traced.first_greedy_row() - first_row);
  const int64_t rows = actual.size(0) - skipped;
  if (rows <= 0) return;
  const int64_t first_token = first_row + skipped - traced.first_greedy_row();
  const auto begin = traced.greedy.begin() + first_token;
  const std::vector<int64_t> next(begin, begin + rows);
  const at::Tensor tokens = at::tensor(next, at::kLong).unsqueeze(1);
  const auto logprobs = [&](const at::Tensor& logits) {
    return at::log_softmax(logits.narrow(0, skipped, rows), -1).gather(1, tokens).squeeze(1);
  };
  const at::Tensor difference = logprobs(actual).sub(logprobs(expected)).abs();
  const at::Tensor bounds = row_bounds(expected.narrow(0, skipped, rows));
  const at::Tensor share = difference.div(bounds);
  const auto row = share.argmax().item<int64_t>();
  const bool first = found_.logprob.bound == 0;
  if (!first && !larger(share[row].item<double>(), found_.logprob.value / found_.logprob.bound)) return;
  found_.logprob = {difference[row].item<double>(), bounds[row].item<double>(), prompt, first_row + skipped + row,
                    next[row]};
}

/// What a log-probability may differ by in each row of the baseline's logits.
at::Tensor LogitsComparison::row_bounds(const at::Tensor& expected) const {
  return expected.abs()
      .amax(1)
      .mul(found_.bounds.relative_logit)
      .clamp_min(std::max(found_.bounds.least_logprob, kTiny));
}

void LogitsComparison::add_greedy(int64_t prompt, const std::vector<int32_t>& tokens) {
  const TracedPrompt& traced = baseline_.prompts()[prompt];
  for (size_t i = 0; i < traced.greedy.size(); ++i) {
    if (i < tokens.size() && tokens[i] == traced.greedy[i]) continue;
    const auto index = static_cast<int64_t>(i);
    const int64_t row = traced.first_greedy_row() + index;
    const at::Tensor expected = baseline_.logits(prompt, {row, row + 1});
    const double bound = found_.bounds.same_tokens ? 0 : row_bounds(expected).item<double>();
    TokenDifference difference{prompt, index, traced.greedy[i], {}, lead(expected), bound};
    if (i < tokens.size()) difference.actual = tokens[i];
    if (!found_.token || difference.gap - difference.bound > found_.token->gap - found_.token->bound) {
      found_.token = difference;
    }
    return;
  }
}

Comparison LogitsComparison::finish() const {
  Comparison comparison = found_;
  const VerifyBounds& bounds = comparison.bounds;
  if (bounds.same_tokens) {
    if (comparison.token) comparison.breaches.push_back("a greedy token differs");
    if (!(comparison.logit.relative <= bounds.relative_logit)) {
      comparison.breaches.push_back(fmt::format("a logit differs by {:.2g} of its row's largest, more than {:.2g}",
                                                comparison.logit.relative, bounds.relative_logit));
    }
    return comparison;
  }
  if (comparison.token && !(comparison.token->gap < comparison.token->bound)) {
    comparison.breaches.push_back(
        fmt::format("a greedy token differs where the best logit leads by {:.2g}, not less than {:.2g}",
                    comparison.token->gap, comparison.token->bound));
  }
  if (!(comparison.logprob.value <= comparison.logprob.bound)) {
    comparison.breaches.push_back(fmt::format("a greedy token's log-probability differs by {:.2g}, more than {:.2g}",
                                              comparison.logprob.value, comparison.logprob.bound));
  }
  return comparison;
}

}  // namespace headway
