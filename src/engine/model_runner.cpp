#include "engine/model_runner.h"

#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include "engine/sampler.h"
#include "headway/base/error.h"

namespace headway {
namespace {

constexpr GroupRank kDriver{0};

at::Tensor index_tensor(const std::vector<int64_t>& values, c10::Device device) {
  return at::tensor(values, at::kLong).to(device);
}

SampledToken sample(std::span<const float> logits, const Request& request) {
  try {
    return {sample_token(logits, request.params, request.seed, request.generated_tokens()), ""};
  } catch (const Error& error) {
    return {0, error.what()};
  }
}

/// One token for each row of `logits`, [rows, vocab], which belong to the sequences of `batch` that sample.
std::vector<SampledToken> sample_rows(const at::Tensor& logits, const ScheduledBatch& batch) {
  std::vector<SampledToken> tokens;
  if (!logits.defined()) return tokens;
  const at::Tensor rows = logits.to(at::kCPU, at::kFloat).contiguous();
  const size_t vocab = rows.size(1);
  const float* row = rows.const_data_ptr<float>();
  for (const ScheduledSequence& sequence : batch.sequences) {
    if (!sequence.samples()) continue;
    tokens.push_back(sample({row, vocab}, *sequence.request));
    row += vocab;
  }
  return tokens;
}

MessageQueueOptions queue_options(const ParallelState& state) {
  MessageQueueOptions options;
  options.timeout = state.timeout();
  options.local_ranks = state.launch().local_world_size;
  return options;
}

}  // namespace

ModelRunner::ModelRunner(CausalLM& model, const ParallelState& state, int64_t blocks, int64_t block_size)
    : model_(model),
      block_size_(block_size),
      caches_(model.allocate_kv_cache(blocks, block_size)),
      steps_(make_message_queue(state.world(), kDriver, queue_options(state))) {}

std::vector<SampledToken> ModelRunner::step(const ScheduledBatch& batch) {
  const StepInput input = StepInput::of(batch, block_size_);
  steps_->broadcast(serialise(input));
  return sample_rows(compute(input), batch);
}

void ModelRunner::stop() {
  steps_->broadcast(serialise({.stop = true, .sequences = {}}));
}

void ModelRunner::follow() {
  while (true) {
    const StepInput input = parse_step_input(steps_->receive());
    if (input.stop) return;
    compute(input);
  }
}

/// The logits of the rows that ask for them, [rows, vocab], or an undefined tensor if none does.
at::Tensor ModelRunner::compute(const StepInput& input) {
  const c10::InferenceMode inference;
  const AttentionBatch batch = input.attention_batch(block_size_);
  const at::Tensor hidden = model_.forward(index_tensor(input.token_ids(), model_.device()), batch, caches_);
  const std::vector<int64_t> rows = input.logit_rows();
  if (rows.empty()) return {};
  if (static_cast<int64_t>(rows.size()) == batch.num_tokens()) return model_.compute_logits(hidden);
  return model_.compute_logits(hidden.index_select(0, index_tensor(rows, model_.device())));
}

}  // namespace headway
