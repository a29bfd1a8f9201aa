#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "headway/base/error.h"
#include "headway/engine/request_output.h"
#include "headway/engine/sampling_params.h"
#include "headway/models/causal_lm.h"
#include "headway/parallel/parallel_state.h"

namespace headway {

/// Sizes of an engine. LLMEngine checks them against the model and the memory.
struct EngineOptions {
  std::optional<int64_t> max_model_len;  ///< tokens of a sequence, prompt and new ones; absent: what the model allows
  std::optional<int64_t> kv_blocks;      ///< absent: as many as max_num_seqs need or half of the free memory holds
  std::optional<int64_t> block_size;     ///< tokens of a KV block; absent: 16 on a CPU, 256 on CUDA
  int64_t max_num_seqs = 64;             ///< sequences that are computed side by side
  int64_t max_batch_tokens = 1024;       ///< tokens of one step; longer prompts are cut into chunks
  std::vector<int64_t> eos_token_ids;    ///< end a text beside those of the model's config: the tokenizer's
  std::optional<int64_t> max_queue;      ///< requests beyond max_num_seqs that may wait; absent: any number
  bool prefix_caching = true;            ///< whether sequences that begin alike share KV blocks
};

/// As many requests as may be are in the engine already; a later try may succeed.
class QueueFull : public Error {
 public:
  using Error::Error;
};

/// What an engine does and has done.
struct EngineStats {
  int64_t running = 0;          ///< requests that hold KV blocks
  int64_t waiting = 0;          ///< requests that wait for some
  int64_t preemptions = 0;      ///< how often a request had to give its blocks up
  int64_t computed_tokens = 0;  ///< that went through the model
  int64_t cached_tokens = 0;    ///< that did not, as their K and V were known
};

/// Generates text for many requests at a time. Every rank builds one, with the same options; rank 0 adds requests and
/// steps, the other ranks follow:
///   LLMEngine engine(*loaded.model, *state, options);
///   if (!engine.is_driver()) return engine.follow();
///   engine.add_request(prompt, params);
///   while (engine.has_unfinished()) for (const RequestOutput& output : engine.step()) { ... }
/// Not safe for use by several threads at once.
class LLMEngine {
 public:
  /// `model` and `state` must outlive the engine. The kernels' threads are given this rank's share of the host's
  /// cores. All ranks take the number of KV blocks of the rank with the fewest.
  /// Throws ArgumentError for options that cannot be, on every rank alike.
  LLMEngine(CausalLM& model, const ParallelState& state, const EngineOptions& options = {});

  /// On rank 0 stops the followers, unless a step has failed: then nobody may be listening.
  ~LLMEngine();
  LLMEngine(const LLMEngine&) = delete;
  LLMEngine& operator=(const LLMEngine&) = delete;

  bool is_driver() const;  ///< whether this is rank 0

  /// Queues a prompt of token ids. Throws ArgumentError naming the values if the parameters are not legal, an id is
  /// not in the vocabulary, or the request can never fit; QueueFull if too many are in the engine.
  RequestId add_request(std::vector<int32_t> prompt, const SamplingParams& params);

  /// Ends a request without an output and frees its KV blocks; false if it has ended already.
  bool cancel(RequestId request);

  bool has_unfinished() const;

  /// Computes one step on all ranks; what it brought each request that got a token or ended. Once it has thrown, the
  /// engine cannot be used any more.
  std::vector<RequestOutput> step();

  /// Rank 0: lets the other ranks return from `follow`. Requests that are unfinished end without an output.
  void stop();

  /// Rank 0, between steps: lets the other ranks return from `follow`, which they call again before the next step.
  void release();

  /// Other ranks: computes their part of every step until rank 0 stops or releases them.
  void follow();

  int64_t max_model_len() const;
  int64_t kv_blocks() const;       ///< of each rank; one sequence can use them all
  int64_t free_kv_blocks() const;  ///< summed over the attention replicas that own sequences
  int64_t block_size() const;
  EngineStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headway
