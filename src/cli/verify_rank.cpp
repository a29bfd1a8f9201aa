#include "cli/verify_rank.h"

#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "cli/errors.h"
#include "cli/session.h"
#include "cli/teacher_forcing.h"
#include "cli/verify_compare.h"
#include "cli/verify_fault.h"
#include "cli/verify_layers.h"
#include "cli/verify_trace.h"
#include "headway/base/log.h"
#include "headway/engine/llm_engine.h"

namespace headway {
namespace {

constexpr int64_t kSequencesAtATime = 16;
constexpr int64_t kRowsAtATime = 128;  // bounds the memory of logits

std::filesystem::path layers_file(const VerifyJob& job, size_t prompt) {
  return job.layers / fmt::format("prompt-{}.safetensors", prompt);
}

/// The prompts, with the greedy tokens of the baseline where there is one.
std::vector<TracedPrompt> prompts_of(const VerifyJob& job, const std::optional<LogitsTrace>& baseline) {
  if (baseline) return baseline->prompts();
  std::vector<TracedPrompt> prompts;
  for (const auto& ids : job.prompts) prompts.push_back({ids, std::vector<int32_t>(job.tokens)});
  return prompts;
}

void check_lengths(const std::vector<TracedPrompt>& prompts, int64_t max_model_len) {
  for (size_t p = 0; p < prompts.size(); ++p) {
    if (prompts[p].rows() + 1 <= max_model_len) continue;
    throw UsageError(
        fmt::format("prompt {} has {} tokens and {} new ones follow: together they exceed the {} positions "
                    "of the model",
                    p, prompts[p].token_ids.size(), prompts[p].greedy.size(), max_model_len));
  }
}

EngineOptions engine_options(const std::vector<TracedPrompt>& prompts) {
  EngineOptions options;
  options.prefix_caching = false;  // every token is to be seen
  options.max_num_seqs = std::min(kSequencesAtATime, static_cast<int64_t>(prompts.size()));
  options.max_model_len = 2;
  for (const TracedPrompt& prompt : prompts)
    options.max_model_len = std::max(*options.max_model_len, prompt.rows() + 1);
  return options;
}

/// Rank 0 decodes all prompts and the others follow: the greedy tokens on rank 0, nothing elsewhere. A prompt whose
/// logits no token can be chosen from ends early, or is an error if `to_the_end`.
std::vector<std::vector<int32_t>> decode_greedily(LLMEngine& engine, const std::vector<TracedPrompt>& prompts,
                                                  bool to_the_end) {
  std::vector<std::vector<int32_t>> tokens(prompts.size());
  if (!engine.is_driver()) {
    engine.follow();
    return tokens;
  }
  std::map<RequestId, size_t> prompt_of;
  for (size_t p = 0; p < prompts.size(); ++p) {
    SamplingParams greedy;
    greedy.max_tokens = static_cast<int64_t>(prompts[p].greedy.size());
    greedy.ignore_eos = true;
    prompt_of[engine.add_request(prompts[p].token_ids, greedy)] = p;
  }
  while (engine.has_unfinished()) {
    for (const RequestOutput& output : engine.step()) {
      auto& decoded = tokens[prompt_of.at(output.request)];
      decoded.insert(decoded.end(), output.token_ids.begin(), output.token_ids.end());
      if (output.finish_reason != FinishReason::error) continue;
      if (to_the_end) throw Error(output.error);
      log(LogLevel::warning, output.error);
    }
  }
  engine.stop();
  return tokens;
}

/// Feeds a prompt and its greedy tokens chunk by chunk; `use` gets the first row and the logits of each.
template <typename Use>
void force(TeacherForcing& sequence, const TracedPrompt& prompt, const Use& use) {
  const std::vector<int32_t> inputs = prompt.inputs();
  const auto length = static_cast<int64_t>(inputs.size());
  for (int64_t begin = 0; begin < length; begin += kRowsAtATime) {
    const int64_t end = std::min(begin + kRowsAtATime, length);
    use(begin, sequence.feed({inputs.begin() + begin, inputs.begin() + end}));
  }
}

at::Tensor as_tensor(const std::vector<int32_t>& ids) {
  return at::tensor(std::vector<int64_t>(ids.begin(), ids.end()), at::kLong);
}

/// Writes the trace that other layouts are compared with, and with `job.layers` the states of every layer.
void write_trace(const VerifyJob& job, CausalLM& model, const std::vector<TracedPrompt>& prompts, int64_t block_size) {
  SafetensorsWriter trace(job.trace, trace_tensors(prompts, model.config().vocab_size));
  for (size_t p = 0; p < prompts.size(); ++p) {
    trace.append(as_tensor(prompts[p].token_ids));
    trace.append(as_tensor(prompts[p].greedy));
    TeacherForcing sequence(model, prompts[p].rows(), block_size);
    LayerRecorder recorder;
    if (!job.layers.empty()) model.observe_residual([&](auto... seen) { recorder.see(seen...); });
    force(sequence, prompts[p], [&](int64_t, const at::Tensor& logits) { trace.append(logits); });
    model.observe_residual({});
    if (!job.layers.empty()) recorder.write(layers_file(job, p), sequence, model.config().num_layers);
  }
  trace.finish();
}

/// Compares the logits of the baseline's prompts on rank 0, which alone passes `comparison`.
void compare_logits(CausalLM& model, const LogitsTrace& baseline, int64_t block_size, LogitsComparison* comparison) {
  for (size_t p = 0; p < baseline.prompts().size(); ++p) {
    const TracedPrompt& prompt = baseline.prompts()[p];
    TeacherForcing sequence(model, prompt.rows(), block_size);
    force(sequence, prompt, [&](int64_t begin, const at::Tensor& logits) {
      if (comparison) comparison->add_logits(static_cast<int64_t>(p), begin, logits);
    });
  }
}

/// Where this rank's states first leave the baseline's.
std::optional<Deviation> first_deviation(const VerifyJob& job, CausalLM& model, const LogitsTrace& baseline,
                                         int64_t block_size) {
  LayerComparison comparison(model.heads());
  for (size_t p = 0; p < baseline.prompts().size(); ++p) {
    const TracedPrompt& prompt = baseline.prompts()[p];
    TeacherForcing sequence(model, prompt.rows(), block_size);
    comparison.begin_prompt(layers_file(job, p));
    model.observe_residual([&](auto... seen) { comparison.see(seen...); });
    force(sequence, prompt,
          [&](int64_t begin, const at::Tensor& logits) { comparison.begin_chunk(begin + logits.size(0)); });
    model.observe_residual({});
    comparison.see_cache(sequence, model.config().num_layers);
  }
  return comparison.first_above(bounds_for(model.dtype()).relative_hidden);
}

struct Decoded {
  std::vector<std::vector<int32_t>> tokens;
  int64_t block_size = 0;
};

Decoded decode(const VerifyJob& job, CausalLM& model, const ParallelState& state,
               const std::vector<TracedPrompt>& prompts) {
  LLMEngine engine(model, state, engine_options(prompts));
  return {decode_greedily(engine, prompts, !job.trace.empty()), engine.block_size()};
}

}  // namespace

void verify_on_rank(const VerifyJob& job, const ModelPlan& plan, const ParallelState& state) {
  const GlobalRank rank = state.world().global_rank();
  std::optional<LogitsTrace> baseline;
  if (!job.baseline.empty()) baseline.emplace(job.baseline, plan.config.vocab_size);
  std::vector<TracedPrompt> prompts = prompts_of(job, baseline);
  check_lengths(prompts, plan.max_model_len);

  const LoadedModel loaded = load_with_progress(plan, state);
  CausalLM& model = *loaded.model;
  apply_test_fault(model, rank, state.world().size());
  RankFindings findings{rank.value, dtype_name(model.dtype()), {}, {}};

  const Decoded decoded = decode(job, model, state, prompts);
  if (baseline) {
    std::optional<LogitsComparison> comparison;
    if (state.world().is_first()) comparison.emplace(*baseline, model.dtype());
    compare_logits(model, *baseline, decoded.block_size, comparison ? &*comparison : nullptr);
    for (size_t p = 0; comparison && p < prompts.size(); ++p) {
      comparison->add_greedy(static_cast<int64_t>(p), decoded.tokens[p]);
    }
    if (comparison) findings.comparison = comparison->finish();
    if (!job.layers.empty() && job.trace.empty()) {
      findings.deviation = first_deviation(job, model, *baseline, decoded.block_size);
    }
  }
  if (!job.trace.empty()) {
    for (size_t p = 0; p < prompts.size(); ++p) prompts[p].greedy = decoded.tokens[p];
    write_trace(job, model, prompts, decoded.block_size);
  }
  write_findings(job.results, findings);
}

}  // namespace headway
