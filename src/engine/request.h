#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/block_manager.h"
#include "engine/logit_adjustment.h"
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
  int64_t replica = 0;          ///< whose KV blocks these are
  BlockTable block_table;
  KnownPrefix known_prefix;  ///< how far the block table is known to the prefix cache
  SamplingParams params;
  uint64_t seed = 0;
  std::vector<int32_t> ending_token_ids;       ///< those that end the text: end of sequence, stop_token_ids
  std::vector<TokenLogprobs> prompt_logprobs;  ///< of the prompt's tokens from the second on, as far as computed

  int64_t total_tokens() const { return static_cast<int64_t>(token_ids.size()); }
  int64_t generated_tokens() const { return total_tokens() - prompt_tokens; }
  int64_t pending_tokens() const { return total_tokens() - computed_tokens; }
  TokenHistory history() const {
    const std::span<const int32_t> all(token_ids);
    return {all.first(prompt_tokens), all.subspan(prompt_tokens), ending_token_ids};
  }
  bool lacks_prompt_logprobs() const {
    return params.prompt_logprobs && static_cast<int64_t>(prompt_logprobs.size()) < prompt_tokens - 1;
  }
  std::span<const int32_t> computed() const { return std::span<const int32_t>(token_ids).first(computed_tokens); }
  bool decoding() const { return pending_tokens() == 1 && generated_tokens() > 0; }
};

/// A run of a request's pending tokens that one step computes.
struct ScheduledSequence {
  const Request* request = nullptr;
  int64_t num_tokens = 0;

  int64_t context_length() const { return request->computed_tokens + num_tokens; }
  bool samples() const { return context_length() == request->total_tokens(); }  ///< whether a new token follows

  /// How many of the last tokens' logits are asked for: the very last where it samples, and those that prompt_logprobs
  /// are still to be had of.
  int64_t logit_rows() const {
    if (!request->lacks_prompt_logprobs()) return samples() ? 1 : 0;
    const auto known = static_cast<int64_t>(request->prompt_logprobs.size());
    return std::max<int64_t>(context_length() - std::max(request->computed_tokens, known), samples() ? 1 : 0);
  }
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
  std::optional<TokenLogprobs> logprobs = {};  ///< where they were asked for
};

}  // namespace headway
