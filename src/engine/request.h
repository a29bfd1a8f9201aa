#pragma once

#include <cstdint>
#include <vector>

#include "engine/block_manager.h"
#include "headway/engine/request_output.h"
#include "headway/engine/sampling_params.h"

namespace headway {

/// A request as the scheduler keeps it.
struct Request {
  RequestId id = 0;
  std::vector<int32_t> token_ids;  ///< the prompt, then what was generated
  int64_t prompt_tokens = 0;
  int64_t max_tokens = 0;       ///< new ones, bounded by what the KV cache can hold
  int64_t computed_tokens = 0;  ///< those whose K and V lie in the cache
  BlockTable block_table;
  SamplingParams params;
  uint64_t seed = 0;

  int64_t total_tokens() const { return static_cast<int64_t>(token_ids.size()); }
  int64_t generated_tokens() const { return total_tokens() - prompt_tokens; }
  int64_t pending_tokens() const { return total_tokens() - computed_tokens; }
  bool decoding() const { return pending_tokens() == 1 && generated_tokens() > 0; }
};

/// A run of a request's pending tokens that one step computes.
struct ScheduledSequence {
  const Request* request = nullptr;
  int64_t num_tokens = 0;

  int64_t context_length() const { return request->computed_tokens + num_tokens; }
  bool samples() const { return context_length() == request->total_tokens(); }  ///< whether a new token follows
};

/// What one step computes. Valid until the scheduler is told the results or of a cancellation.
struct ScheduledBatch {
  std::vector<ScheduledSequence> sequences;

  bool empty() const { return sequences.empty(); }
};

/// A token chosen for a sequence, or why none could be.
struct SampledToken {
  int32_t token = 0;
  std::string error;
};

}  // namespace headway
