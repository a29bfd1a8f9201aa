#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "engine/block_manager.h"
#include "engine/request.h"

namespace headway {

/// Limits of a scheduler; all are positive.
struct SchedulerLimits {
  int64_t max_model_len = 0;     ///< tokens of a sequence, prompt and new ones together
  int64_t max_num_seqs = 0;      ///< sequences that hold KV blocks at a time
  int64_t max_batch_tokens = 0;  ///< tokens of a step, at least max_num_seqs
  std::vector<int64_t> eos_token_ids;
  std::optional<int64_t> max_queue = {};  ///< requests beyond max_num_seqs that may wait; absent: any number
  bool prefix_caching = true;             ///< whether sequences that begin alike share KV blocks
};

/// The KV blocks that a scheduler hands out.
struct KVBlocks {
  int64_t blocks = 0;  ///< of each replica
  int64_t block_size = 0;
  int64_t replicas = 1;  ///< attention replicas that own sequences of their own
};

/// Decides what each step computes: requests join and leave at any step, first come first served within a budget of
/// tokens. Decoding requests come first, so a long prompt, cut into chunks, does not stall them. When blocks run out
/// the latest running request gives up its own and is recomputed later; the earliest always makes progress.
///
/// Where attention replicas own sequences each has its own KV blocks. A request joins the replica that runs the fewest,
/// of equals the one with the most free blocks, and stays there until it ends or gives up its blocks.
class Scheduler {
 public:
  /// Throws ArgumentError for limits that contradict each other.
  Scheduler(SchedulerLimits limits, const KVBlocks& blocks);

  /// Queues a request. Throws ArgumentError at once, naming the sizes, if it can never fit, QueueFull if too many wait.
  RequestId add(std::vector<int32_t> prompt, const SamplingParams& params, uint64_t seed);

  /// Forgets a request and frees its blocks for the next step; false if it is not known (any more).
  bool cancel(RequestId id);

  /// What to compute next, in the order of the replicas.
  ScheduledBatch schedule();

  /// Keeps what is known of further tokens of a prompt for the request's first output.
  void add_prompt_logprobs(RequestId id, const std::vector<TokenLogprobs>& logprobs);

  /// Takes one token for each sequence of `batch` that samples, in order, and says what became of their requests.
  std::vector<RequestOutput> update(const ScheduledBatch& batch, const std::vector<SampledToken>& tokens);

  bool has_unfinished() const { return !requests_.empty(); }
  int64_t num_running() const { return static_cast<int64_t>(running_.size()); }
  int64_t num_waiting() const { return static_cast<int64_t>(waiting_.size()); }
  int64_t num_preemptions() const { return num_preemptions_; }
  int64_t num_computed_tokens() const { return num_computed_tokens_; }
  int64_t num_cached_tokens() const { return num_cached_tokens_; }  ///< whose K and V another request had computed
  int64_t replica_blocks() const { return blocks_.front().total_blocks(); }  ///< what one sequence can use
  int64_t free_blocks() const;                                               ///< of all replicas
  int64_t block_size() const { return blocks_.front().block_size(); }

 private:
  void continue_running(ScheduledBatch& batch, int64_t& budget);
  void check_queue() const;
  void check_length(int64_t prompt_tokens, int64_t max_tokens) const;
  /// The new tokens that the whole cache has room for; says so where they are fewer than `max_tokens`.
  int64_t limited_by_cache(int64_t prompt_tokens, int64_t max_tokens) const;
  std::vector<int64_t> replicas_to_try() const;
  bool admit(Request& request);
  bool admit(Request& request, int64_t replica);
  BlockManager& blocks_of(const Request& request) { return blocks_[request.replica]; }
  void give_back(Request& request);
  void admit_waiting(ScheduledBatch& batch, int64_t& budget);
  std::vector<RequestId> running_in_order() const;
  bool make_room(Request& request);
  Request& latest_of(int64_t replica);
  void preempt(Request& request);
  void remove(RequestId id);
  std::vector<int32_t> ending_token_ids(const SamplingParams& params) const;

  SchedulerLimits limits_;
  std::vector<BlockManager> blocks_;  ///< by replica
  RequestId next_id_ = 1;
  int64_t num_preemptions_ = 0;
  int64_t num_computed_tokens_ = 0;
  int64_t num_cached_tokens_ = 0;
  std::map<RequestId, Request> requests_;
  std::set<RequestId> waiting_;  ///< ids ascend with arrival, so both sets are in order of arrival
  std::set<RequestId> running_;
};

}  // namespace headway
