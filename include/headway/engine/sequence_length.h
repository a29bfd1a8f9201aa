#pragma once

#include <cstdint>
#include <optional>

#include "headway/config/model_config.h"

namespace headway {

/// The longest sequence that a model of this config can hold: its max_position_embeddings, stretched by its rope
/// scaling.
int64_t longest_sequence(const ModelConfig& config);

/// Tokens that a sequence may reach: `asked`, or the longest where nothing is asked for. Throws ArgumentError naming
/// the values if a model of this config cannot hold so many, or a prompt and a new token do not fit.
int64_t resolve_max_model_len(const ModelConfig& config, std::optional<int64_t> asked);

/// Throws ArgumentError naming the values unless the prompt and its new tokens fit in `max_model_len`.
void check_sequence_length(int64_t prompt_tokens, int64_t max_tokens, int64_t max_model_len);

}  // namespace headway
