#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/block_manager.h"
#include "engine/request.h"
#include "headway/kernels/attention_batch.h"

namespace headway {

/// What every rank must know of one sequence to compute its part of a step.
struct SequenceInput {
  std::vector<int32_t> token_ids;  ///< the tokens to compute: the last ones of the context
  int64_t context_length = 0;      ///< tokens in all, these included
  BlockTable block_table;          ///< enough blocks for the context
  int64_t logit_rows = 0;          ///< of so many of the last tokens the logits are asked for
  int64_t replica = 0;             ///< the attention replica that owns the sequence

  friend bool operator==(const SequenceInput&, const SequenceInput&) = default;
};

/// What rank 0 tells all ranks before a step. It says all there is to know, so that other ranks keep no state of
/// requests; the tokens that were sampled last travel in it like any other.
struct StepInput {
  bool stop = false;                     ///< no step follows: the other ranks may return
  std::vector<SequenceInput> sequences;  ///< in the order of the replicas that own them

  static StepInput of(const ScheduledBatch& batch, int64_t block_size);

  std::vector<int64_t> token_ids() const;  ///< [tokens] of all replicas

  /// How many tokens each replica has, and of how many the logits are asked for.
  std::vector<int64_t> replica_tokens(int replicas) const;
  std::vector<int64_t> replica_logit_rows(int replicas) const;

  /// What is one replica's: rows of its tokens whose logits are asked for, and its batch.
  std::vector<int64_t> logit_rows(int64_t replica = 0) const;
  AttentionBatch attention_batch(int64_t block_size, int64_t replica = 0) const;

  friend bool operator==(const StepInput&, const StepInput&) = default;
};

/// The binary form: little-endian 32-bit words in the order of the fields, lists after their lengths.
std::string serialise(const StepInput& input);

/// Throws CommunicationError for bytes that `serialise` does not write.
StepInput parse_step_input(std::string_view bytes);

}  // namespace headway
