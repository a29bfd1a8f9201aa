#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/request.h"

namespace headway {

/// What the logits of one step brought.
struct StepResults {
  std::vector<SampledToken> tokens;  ///< one for each sequence that samples, in order
  std::vector<std::pair<RequestId, std::vector<TokenLogprobs>>> prompt_logprobs;
};

/// The next token of `request` after `logits`, [vocab], or why there is none.
SampledToken sample_next(std::span<const float> logits, const Request& request);

/// Turns the rows of logits that a batch asks for into tokens, on rank 0. They come in order, in as many pieces as it
/// pleases whoever computes them.
class RowSampler {
 public:
  explicit RowSampler(const ScheduledBatch& batch);

  /// Takes the next rows, [rows, vocab].
  void take(const at::Tensor& logits);

  StepResults finish() { return std::move(results_); }

 private:
  struct Row {
    const ScheduledSequence* sequence;
    int64_t position;  ///< of the token that the logits follow
  };
  void take_row(std::span<const float> logits, const Row& row);

  std::vector<Row> rows_;
  size_t next_ = 0;
  StepResults results_;
};

}  // namespace headway
