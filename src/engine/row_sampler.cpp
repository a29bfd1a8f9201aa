#include "engine/row_sampler.h"

#include "base/trace.h"
#include "engine/logprobs.h"
#include "engine/sampler.h"
#include "headway/base/error.h"

namespace headway {
namespace {

int32_t choose(std::span<const float> logits, const Request& request) {
  require_finite(logits);
  const int64_t index = request.generated_tokens();
  const TokenHistory history = request.history();
  if (!adjusts_logits(request.params, history)) return sample_token(logits, request.params, request.seed, index);
  std::vector<float> adjusted(logits.begin(), logits.end());
  adjust_logits(adjusted, request.params, history);
  return sample_token(adjusted, request.params, request.seed, index);
}

}  // namespace

SampledToken sample_next(std::span<const float> logits, const Request& request) {
  try {
    SampledToken sampled{choose(logits, request), "", {}};
    if (request.params.logprobs) sampled.logprobs = logprobs_of(logits, sampled.token, *request.params.logprobs);
    return sampled;
  } catch (const Error& error) {
    return {0, error.what(), {}};
  }
}

RowSampler::RowSampler(const ScheduledBatch& batch) {
  for (const ScheduledSequence& sequence : batch.sequences) {
    const int64_t end = sequence.context_length();
    for (int64_t position = end - sequence.logit_rows(); position < end; ++position) {
      rows_.push_back({&sequence, position});
    }
  }
}

void RowSampler::take(const at::Tensor& logits) {
  const TraceSpan span([] { return "sample"; });
  const at::Tensor on_host = logits.to(at::kCPU, at::kFloat).contiguous();
  const auto vocab = static_cast<size_t>(on_host.size(1));
  const float* row = on_host.const_data_ptr<float>();
  for (int64_t i = 0; i < on_host.size(0); ++i, row += vocab) take_row({row, vocab}, rows_.at(next_++));
}

void RowSampler::take_row(std::span<const float> logits, const Row& row) {
  const Request& request = *row.sequence->request;
  if (request.lacks_prompt_logprobs() && row.position + 1 < request.prompt_tokens) {
    auto& all = results_.prompt_logprobs;
    if (all.empty() || all.back().first != request.id) all.emplace_back(request.id, std::vector<TokenLogprobs>{});
    all.back().second.push_back(
        logprobs_of(logits, request.token_ids[row.position + 1], *request.params.prompt_logprobs));
  }
  const bool last = row.position + 1 == row.sequence->context_length();
  if (last && row.sequence->samples()) results_.tokens.push_back(sample_next(logits, request));
}

}  // namespace headway
