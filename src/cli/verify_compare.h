#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cli/verify_job.h"
#include "cli/verify_trace.h"

namespace headway {

/// "fp32", "bf16", "fp16".
std::string dtype_name(c10::ScalarType dtype);

/// What is asked of a layout that computes in `dtype`; docs/verify.md says why.
VerifyBounds bounds_for(c10::ScalarType dtype);

/// Gathers how far logits and greedy tokens are from a trace.
class LogitsComparison {
 public:
  LogitsComparison(const LogitsTrace& baseline, c10::ScalarType dtype);

  /// Logits [rows, vocab_size] fp32 after the inputs of a prompt from `first_row` on.
  void add_logits(int64_t prompt, int64_t first_row, const at::Tensor& logits);

  /// The greedy tokens of a prompt as the layout decoded them itself.
  void add_greedy(int64_t prompt, const std::vector<int32_t>& tokens);

  /// With the bounds that do not hold.
  Comparison finish() const;

 private:
  void compare_logits(int64_t prompt, int64_t first_row, const at::Tensor& actual, const at::Tensor& expected);
  void compare_logprobs(int64_t prompt, int64_t first_row, const at::Tensor& actual, const at::Tensor& expected);
  at::Tensor row_bounds(const at::Tensor& expected) const;

  const LogitsTrace& baseline_;
  Comparison found_;
};

}  // namespace headway
