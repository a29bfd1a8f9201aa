#include "engine/model_runner.h"

#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "base/trace.h"

namespace headway {
namespace {

constexpr GroupRank kDriver{0};
constexpr int64_t kLogitRows = 256;  // computed at a time, so that many of a large vocabulary take bounded memory

at::Tensor index_tensor(const std::vector<int64_t>& values, c10::Device device) {
  return at::tensor(values, at::kLong).to(device);
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
      attn_dp_(state.attn_dp()),
      replica_(model.replicas() > 1 ? attn_dp_.rank().value : 0),
      block_size_(block_size),
      caches_(model.allocate_kv_cache(blocks, block_size)),
      finite_(FiniteWatch::asked_for() ? std::make_unique<FiniteWatch>(model) : nullptr),
      steps_(make_message_queue(state.world(), kDriver, queue_options(state))) {}

StepResults ModelRunner::step(const ScheduledBatch& batch) {
  const TraceSpan span([] { return "step"; });
  const StepInput input = StepInput::of(batch, block_size_);
  steps_->broadcast(serialise(input));
  RowSampler sampler(batch);
  compute(input, [&sampler](const at::Tensor& logits) { sampler.take(logits); });
  StepResults results = sampler.finish();
  if (finite_) explain_errors(batch, results);
  return results;
}

void ModelRunner::explain_errors(const ScheduledBatch& batch, StepResults& results) const {
  auto token = results.tokens.begin();
  int64_t rows = 0;
  for (const ScheduledSequence& sequence : batch.sequences) {
    rows += sequence.num_tokens;
    if (!sequence.samples()) continue;
    const bool seen = sequence.request->replica == replica_;  // rank 0's replica comes first in the batch
    if (seen && !token->error.empty()) token->error += finite_->verdict(rows - 1);
    ++token;
  }
}

void ModelRunner::stop() {
  steps_->broadcast(serialise({.stop = true, .sequences = {}}));
}

void ModelRunner::follow() {
  while (true) {
    const StepInput input = parse_step_input(steps_->receive());
    if (input.stop) return;
    const TraceSpan span([] { return "step"; });
    compute(input, [](const at::Tensor&) {});
  }
}

void ModelRunner::compute(const StepInput& input, const LogitsConsumer& consume) {
  const c10::InferenceMode inference;
  AttentionBatch batch = input.attention_batch(block_size_, replica_);
  if (model_.replicas() > 1) batch.replica_tokens = input.replica_tokens(model_.replicas());
  if (finite_) finite_->begin_step();
  const at::Tensor hidden = model_.forward(index_tensor(input.token_ids(), model_.device()), batch, caches_);
  const at::Tensor rows = rows_for_logits(input, hidden);
  for (int64_t first = 0; first < rows.size(0); first += kLogitRows) {
    consume(model_.compute_logits(rows.slice(0, first, std::min(first + kLogitRows, rows.size(0)))));
  }
}

at::Tensor ModelRunner::rows_for_logits(const StepInput& input, const at::Tensor& hidden) const {
  const std::vector<int64_t> rows = input.logit_rows(replica_);
  const bool all = static_cast<int64_t>(rows.size()) == hidden.size(0);
  const at::Tensor own = all ? hidden : hidden.index_select(0, index_tensor(rows, model_.device()));
  return model_.replicas() > 1 ? attn_dp_.all_gather(own, 0, input.replica_logit_rows(model_.replicas())) : own;
}

}  // namespace headway
