#include "engine/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ranges>
#include <utility>

#include "headway/base/error.h"
#include "headway/base/log.h"
#include "headway/engine/llm_engine.h"
#include "headway/engine/sequence_length.h"

namespace headway {
namespace {

void check_limits(const SchedulerLimits& limits) {
  if (limits.max_model_len < 2 || limits.max_num_seqs < 1) {
    throw ArgumentError(fmt::format("max_model_len is {} and max_num_seqs {}; they must be at least 2 and 1",
                                    limits.max_model_len, limits.max_num_seqs));
  }
  if (limits.max_batch_tokens < limits.max_num_seqs) {
    throw ArgumentError(fmt::format("max_batch_tokens is {}; it must be at least max_num_seqs, which is {}",
                                    limits.max_batch_tokens, limits.max_num_seqs));
  }
}

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

/// What a new token means for its request.
RequestOutput append(Request& request, const SampledToken& sampled) {
  RequestOutput output;
  output.request = request.id;
  if (!sampled.error.empty()) {
    output.finish_reason = FinishReason::error;
    output.error = sampled.error;
    return output;
  }
  if (request.generated_tokens() == 0) output.prompt_logprobs = request.prompt_logprobs;
  request.token_ids.push_back(sampled.token);
  output.token_ids = {sampled.token};
  if (sampled.logprobs) output.logprobs = {*sampled.logprobs};
  if (contains(request.ending_token_ids, sampled.token)) {
    output.finish_reason = FinishReason::stop;
    if (contains(request.params.stop_token_ids, sampled.token)) output.stop_token = sampled.token;
  } else if (request.generated_tokens() >= request.max_tokens) {
    output.finish_reason = FinishReason::length;
  }
  return output;
}

void take(ScheduledBatch& batch, int64_t& budget, const Request& request) {
  const int64_t tokens = std::min(request.pending_tokens(), budget);
  batch.sequences.push_back({&request, tokens});
  budget -= tokens;
}

}  // namespace

Scheduler::Scheduler(SchedulerLimits limits, const KVBlocks& blocks) : limits_(std::move(limits)) {
  check_limits(limits_);
  for (int64_t i = 0; i < blocks.replicas; ++i) blocks_.emplace_back(blocks.blocks, blocks.block_size);
}

int64_t Scheduler::free_blocks() const {
  int64_t free = 0;
  for (const BlockManager& blocks : blocks_) free += blocks.free_blocks();
  return free;
}

void Scheduler::check_queue() const {
  if (!limits_.max_queue || static_cast<int64_t>(requests_.size()) < limits_.max_num_seqs + *limits_.max_queue) return;
  throw QueueFull(fmt::format("{} requests are in the engine, as many as max_num_seqs {} and max_queue {} allow",
                              requests_.size(), limits_.max_num_seqs, *limits_.max_queue));
}

void Scheduler::check_length(int64_t prompt_tokens, int64_t max_tokens) const {
  if (prompt_tokens == 0) throw ArgumentError("the prompt has no tokens");
  check_sequence_length(prompt_tokens, max_tokens, limits_.max_model_len);
  const BlockManager& blocks = blocks_.front();
  if (prompt_tokens > blocks.total_tokens()) {
    throw ArgumentError(fmt::format("the prompt has {} tokens, but the KV cache holds {} ({} blocks of {})",
                                    prompt_tokens, blocks.total_tokens(), blocks.total_blocks(), blocks.block_size()));
  }
}

int64_t Scheduler::limited_by_cache(int64_t prompt_tokens, int64_t max_tokens) const {
  const BlockManager& blocks = blocks_.front();
  const int64_t room = blocks.total_tokens() - prompt_tokens + 1;  // the last new token is never fed back
  if (max_tokens > room) {
    log(LogLevel::warning, fmt::format("the KV cache holds {} tokens ({} blocks of {}): after a prompt of {} a text "
                                       "ends with {} new ones, where {} are allowed",
                                       blocks.total_tokens(), blocks.total_blocks(), blocks.block_size(), prompt_tokens,
                                       room, max_tokens));
  }
  return std::min(max_tokens, room);
}

RequestId Scheduler::add(std::vector<int32_t> prompt, const SamplingParams& params, uint64_t seed) {
  params.validate();
  const int64_t prompt_tokens = static_cast<int64_t>(prompt.size());
  check_length(prompt_tokens, params.max_tokens);
  check_queue();
  Request request;
  request.id = next_id_++;
  request.token_ids = std::move(prompt);
  request.prompt_tokens = prompt_tokens;
  request.max_tokens = limited_by_cache(prompt_tokens, params.max_tokens);
  request.params = params;
  request.seed = seed;
  request.ending_token_ids = ending_token_ids(params);
  waiting_.insert(request.id);
  const RequestId id = request.id;
  requests_.emplace(id, std::move(request));
  return id;
}

std::vector<int32_t> Scheduler::ending_token_ids(const SamplingParams& params) const {
  std::vector<int32_t> ids = params.stop_token_ids;
  if (!params.ignore_eos) ids.insert(ids.end(), limits_.eos_token_ids.begin(), limits_.eos_token_ids.end());
  return ids;
}

void Scheduler::add_prompt_logprobs(RequestId id, const std::vector<TokenLogprobs>& logprobs) {
  auto& known = requests_.at(id).prompt_logprobs;
  known.insert(known.end(), logprobs.begin(), logprobs.end());
}

bool Scheduler::cancel(RequestId id) {
  if (!requests_.contains(id)) return false;
  remove(id);
  return true;
}

ScheduledBatch Scheduler::schedule() {
  ScheduledBatch batch;
  int64_t budget = limits_.max_batch_tokens;
  continue_running(batch, budget);
  admit_waiting(batch, budget);
  std::ranges::stable_sort(batch.sequences, {}, [](const ScheduledSequence& s) { return s.request->replica; });
  return batch;
}

void Scheduler::continue_running(ScheduledBatch& batch, int64_t& budget) {
  for (const RequestId id : running_in_order()) {
    if (budget == 0) return;
    if (!running_.contains(id)) continue;  // it gave its blocks to an earlier one
    Request& request = requests_.at(id);
    if (make_room(request)) take(batch, budget, request);
  }
}

void Scheduler::admit_waiting(ScheduledBatch& batch, int64_t& budget) {
  while (budget > 0 && !waiting_.empty() && num_running() < limits_.max_num_seqs) {
    Request& request = requests_.at(*waiting_.begin());
    if (!admit(request)) return;
    running_.insert(request.id);
    waiting_.erase(request.id);
    take(batch, budget, request);
  }
}

std::vector<int64_t> Scheduler::replicas_to_try() const {
  std::vector<int64_t> running(blocks_.size(), 0);
  for (const RequestId id : running_) ++running[requests_.at(id).replica];
  std::vector<int64_t> replicas(blocks_.size());
  std::iota(replicas.begin(), replicas.end(), 0);
  std::ranges::stable_sort(
      replicas, {}, [&](int64_t replica) { return std::pair(running[replica], -blocks_[replica].free_blocks()); });
  return replicas;
}

bool Scheduler::admit(Request& request) {
  const std::vector<int64_t> replicas = replicas_to_try();
  return std::ranges::any_of(replicas, [&](int64_t replica) { return admit(request, replica); });
}

/// All of a request's tokens get their blocks now, so that only decoding ever runs out of them. Those that are known
/// need not be computed, but for the last token, whose logits are asked for, and where prompt_logprobs need them.
bool Scheduler::admit(Request& request, int64_t replica) {
  request.replica = replica;
  BlockManager& blocks = blocks_of(request);
  if (limits_.prefix_caching && !request.lacks_prompt_logprobs()) {
    const auto all_but_last = std::span<const int32_t>(request.token_ids).first(request.total_tokens() - 1);
    request.known_prefix = blocks.share_prefix(request.block_table, all_but_last);
    request.computed_tokens = request.known_prefix.blocks * blocks.block_size();
  }
  if (!blocks.grow(request.block_table, request.total_tokens())) {
    give_back(request);
    return false;
  }
  num_cached_tokens_ += request.computed_tokens;
  return true;
}

void Scheduler::give_back(Request& request) {
  blocks_of(request).release(request.block_table);
  request.known_prefix = {};
  request.computed_tokens = 0;
}

std::vector<RequestId> Scheduler::running_in_order() const {
  std::vector<RequestId> ids(running_.begin(), running_.end());
  std::stable_partition(ids.begin(), ids.end(), [this](RequestId id) { return requests_.at(id).decoding(); });
  return ids;
}

bool Scheduler::make_room(Request& request) {
  while (!blocks_of(request).grow(request.block_table, request.total_tokens())) {
    Request& latest = latest_of(request.replica);
    preempt(latest);
    if (latest.id == request.id) return false;
  }
  return true;
}

Request& Scheduler::latest_of(int64_t replica) {
  const auto latest = std::find_if(running_.rbegin(), running_.rend(),
                                   [&](RequestId id) { return requests_.at(id).replica == replica; });
  return requests_.at(*latest);
}

void Scheduler::preempt(Request& request) {
  give_back(request);
  running_.erase(request.id);
  waiting_.insert(request.id);
  ++num_preemptions_;
}

void Scheduler::remove(RequestId id) {
  give_back(requests_.at(id));
  running_.erase(id);
  waiting_.erase(id);
  requests_.erase(id);
}

std::vector<RequestOutput> Scheduler::update(const ScheduledBatch& batch, const std::vector<SampledToken>& tokens) {
  std::vector<RequestOutput> outputs;
  size_t next = 0;
  for (const ScheduledSequence& sequence : batch.sequences) {
    Request& request = requests_.at(sequence.request->id);
    const bool samples = sequence.samples();
    request.computed_tokens += sequence.num_tokens;
    num_computed_tokens_ += sequence.num_tokens;
    if (limits_.prefix_caching)
      blocks_of(request).remember(request.block_table, request.computed(), request.known_prefix);
    if (!samples) continue;
    if (next == tokens.size()) throw ArgumentError(fmt::format("{} tokens are too few for the batch", tokens.size()));
    outputs.push_back(append(request, tokens[next++]));
    if (outputs.back().finish_reason) remove(request.id);
  }
  if (next != tokens.size()) throw ArgumentError(fmt::format("{} tokens for {} sequences", tokens.size(), next));
  return outputs;
}

}  // namespace headway
