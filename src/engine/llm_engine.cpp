#include "headway/engine/llm_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <random>

#include "engine/core_share.h"
#include "engine/kv_cache_size.h"
#include "engine/linear_choice.h"
#include "engine/model_runner.h"
#include "engine/scheduler.h"
#include "headway/base/error.h"
#include "headway/base/log.h"
#include "headway/engine/sequence_length.h"
#include "headway/kernels/threads.h"

namespace headway {
namespace {

constexpr int64_t kCpuBlockSize = 16;
constexpr int64_t kCudaBlockSize = 256;  // what ATen's flash attention asks of block tables

void require_positive(const char* name, std::optional<int64_t> value) {
  if (value && *value < 1) throw ArgumentError(fmt::format("{} is {}; it must be at least 1", name, *value));
}

int64_t resolve_block_size(const CausalLM& model, const EngineOptions& options) {
  return options.block_size.value_or(model.device().is_cpu() ? kCpuBlockSize : kCudaBlockSize);
}

/// The blocks that this rank would take, before all ranks settle on the smallest.
int64_t blocks_of_rank(const CausalLM& model, const ParallelState& state, const EngineOptions& options,
                       int64_t max_model_len, int64_t block_size) {
  if (options.kv_blocks) return *options.kv_blocks;
  const int64_t sequences = (options.max_num_seqs + model.replicas() - 1) / model.replicas();
  const int64_t wanted = sequences * ((max_model_len + block_size - 1) / block_size);
  const int ranks_sharing = model.device().is_cpu() ? state.launch().local_world_size : 1;
  return affordable_blocks(wanted, kv_block_bytes(model, block_size), free_memory_bytes(model.device()), ranks_sharing);
}

std::vector<int64_t> all_eos_token_ids(const ModelConfig& config, const EngineOptions& options) {
  std::vector<int64_t> ids = config.eos_token_ids;
  for (const int64_t id : options.eos_token_ids) {
    if (id >= 0 && id < config.vocab_size) ids.push_back(id);  // the model gives no other
  }
  return ids;
}

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

struct LLMEngine::Impl {
  Impl(CausalLM& model, const ParallelState& state, const SchedulerLimits& limits, int64_t blocks, int64_t block_size)
      : world(state.world()),
        max_model_len(limits.max_model_len),
        vocab_size(model.config().vocab_size),
        scheduler(limits, {blocks, block_size, model.replicas()}),
        runner(model, state, blocks, block_size) {}

  void require_driver(const char* what) const {
    if (world.is_first()) return;
    throw ArgumentError(fmt::format("rank {} follows; {} on rank 0", world.global_rank().value, what));
  }

  void check_token_ids(const std::vector<int32_t>& ids) const {
    const auto bad = std::find_if(ids.begin(), ids.end(), [this](int32_t id) { return id < 0 || id >= vocab_size; });
    if (bad == ids.end()) return;
    throw ArgumentError(fmt::format("token id {} at position {} of the prompt is not in the vocabulary of {}", *bad,
                                    bad - ids.begin(), vocab_size));
  }

  std::vector<RequestOutput> step() {
    const ScheduledBatch batch = scheduler.schedule();
    StepResults results = runner.step(batch);
    for (auto& [request, logprobs] : results.prompt_logprobs) scheduler.add_prompt_logprobs(request, logprobs);
    return scheduler.update(batch, results.tokens);
  }

  const GroupCoordinator& world;
  int64_t max_model_len;
  int64_t vocab_size;
  Scheduler scheduler;
  ModelRunner runner;
  bool listening = true;  ///< whether the other ranks wait for a step
};

LLMEngine::LLMEngine(CausalLM& model, const ParallelState& state, const EngineOptions& options) {
  require_positive("kv_blocks", options.kv_blocks);
  require_positive("block_size", options.block_size);
  require_positive("max_num_seqs", options.max_num_seqs);
  if (options.max_queue && *options.max_queue < 0) {
    throw ArgumentError(fmt::format("max_queue is {}; it must be at least 0", *options.max_queue));
  }
  const CoreShare share = core_share(state.launch());
  kernels::set_local_ranks(share.rank, share.ranks);
  agree_on_linear_handover(model, state);
  const int64_t max_model_len = resolve_max_model_len(model.config(), options.max_model_len);
  const int64_t block_size = resolve_block_size(model, options);
  const int64_t blocks = smallest_over_ranks(
      state.world(), blocks_of_rank(model, state, options, max_model_len, block_size), state.device());
  const SchedulerLimits limits{
      max_model_len,     options.max_num_seqs,  options.max_batch_tokens, all_eos_token_ids(model.config(), options),
      options.max_queue, options.prefix_caching};
  impl_ = std::make_unique<Impl>(model, state, limits, blocks, block_size);
}

LLMEngine::~LLMEngine() {
  if (!is_driver()) return;
  try {
    stop();
  } catch (const std::exception& error) {
    log(LogLevel::warning, fmt::format("the other ranks could not be told to stop: {}", error.what()));
  }
}

bool LLMEngine::is_driver() const {
  return impl_->world.is_first();
}

RequestId LLMEngine::add_request(std::vector<int32_t> prompt, const SamplingParams& params) {
  impl_->require_driver("requests are added");
  params.validate(impl_->vocab_size);
  impl_->check_token_ids(prompt);
  return impl_->scheduler.add(std::move(prompt), params, params.seed ? *params.seed : random_seed());
}

bool LLMEngine::cancel(RequestId request) {
  return impl_->scheduler.cancel(request);
}

bool LLMEngine::has_unfinished() const {
  return impl_->scheduler.has_unfinished();
}

std::vector<RequestOutput> LLMEngine::step() {
  impl_->require_driver("steps are made");
  if (!impl_->listening) throw Error("the engine has stopped, or a step of it has failed");
  if (!has_unfinished()) return {};
  impl_->listening = false;  // until this step has gone well, the other ranks may be anywhere
  std::vector<RequestOutput> outputs = impl_->step();
  impl_->listening = true;
  return outputs;
}

void LLMEngine::stop() {
  impl_->require_driver("the engine is stopped");
  if (!impl_->listening) return;
  impl_->listening = false;
  impl_->runner.stop();
}

void LLMEngine::release() {
  impl_->require_driver("the others are released");
  if (impl_->listening) impl_->runner.stop();
}

void LLMEngine::follow() {
  if (is_driver()) throw ArgumentError("rank 0 leads; it has no one to follow");
  impl_->runner.follow();
}

int64_t LLMEngine::max_model_len() const {
  return impl_->max_model_len;
}

int64_t LLMEngine::kv_blocks() const {
  return impl_->scheduler.replica_blocks();
}

int64_t LLMEngine::free_kv_blocks() const {
  return impl_->scheduler.free_blocks();
}

EngineStats LLMEngine::stats() const {
  const Scheduler& scheduler = impl_->scheduler;
  return {scheduler.num_running(), scheduler.num_waiting(), scheduler.num_preemptions(),
          scheduler.num_computed_tokens(), scheduler.num_cached_tokens()};
}

int64_t LLMEngine::block_size() const {
  return impl_->scheduler.block_size();
}

}  // namespace headway
