#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "headway/config/model_config.h"

namespace headway {

/// Which group the vocabulary is sharded over; `none` keeps the whole table on every rank.
enum class VocabGroup { tp, lm_head_tp, none };

/// What the T/A attention replicas of a TP group do: compute the same tokens, own different sequences, or own different
/// parts of every sequence's KV cache. `cp` is not served so far.
enum class AttnReplicas { replicate, dp, cp };

std::string_view name_of(VocabGroup group);
std::string_view name_of(AttnReplicas mode);
VocabGroup vocab_group_from_name(std::string_view name);      ///< throws ConfigError naming the legal values
AttnReplicas attn_replicas_from_name(std::string_view name);  ///< throws ConfigError naming the legal values

/// Sizes and choices of a layout. Constraints:
///   world % tp == 0, tp % attn_tp == 0, attn_tp <= total_q_heads; every command asks for world == tp.
struct ParallelConfig {
  int64_t world = 1;
  int64_t tp = 1;
  int64_t attn_tp = 1;
  VocabGroup embedding_group = VocabGroup::tp;
  VocabGroup lm_head_group = VocabGroup::tp;
  AttnReplicas attn_replicas = AttnReplicas::replicate;

  int64_t replicas() const { return tp / attn_tp; }
  bool replicas_own_sequences() const { return attn_replicas == AttnReplicas::dp && replicas() > 1; }
};

/// The attention group sizes that are legal for `total_q_heads` at `tp`: divisors of tp up to total_q_heads, ascending.
std::vector<int64_t> legal_attn_tp(int64_t total_q_heads, int64_t tp);

/// Fills what is absent (tp = world; attn_tp = the largest legal size) and checks the rest.
/// Throws ConfigError with the sizes, the group and the legal sizes, e.g.
///   "lm_head_tp: 9 query heads over 10 ranks leave rank 0 without a head; legal sizes at tp 10: 1, 2, 5".
ParallelConfig resolve_parallel_config(const ModelConfig& model, int64_t world, std::optional<int64_t> tp,
                                       std::optional<int64_t> attn_tp, VocabGroup embedding_group = VocabGroup::tp,
                                       VocabGroup lm_head_group = VocabGroup::tp,
                                       AttnReplicas attn_replicas = AttnReplicas::replicate);

}  // namespace headway
