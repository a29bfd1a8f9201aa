#include "headway/engine/sequence_length.h"

#include <fmt/format.h>

#include <algorithm>

#include "headway/base/error.h"

namespace headway {

int64_t longest_sequence(const ModelConfig& config) {
  const RopeConfig& rope = config.rope;
  if (rope.type == RopeType::standard) return config.max_position_embeddings;
  const int64_t trained = rope.original_max_position_embeddings > 0 ? rope.original_max_position_embeddings
                                                                    : config.max_position_embeddings;
  return std::max(config.max_position_embeddings, static_cast<int64_t>(static_cast<double>(trained) * rope.factor));
}

int64_t resolve_max_model_len(const ModelConfig& config, std::optional<int64_t> asked) {
  const int64_t longest = longest_sequence(config);
  if (asked && (*asked < 2 || *asked > longest)) {
    throw ArgumentError(fmt::format("max_model_len is {}; the model allows 2 to {}", *asked, longest));
  }
  return asked.value_or(longest);
}

void check_sequence_length(int64_t prompt_tokens, int64_t max_tokens, int64_t max_model_len) {
  if (prompt_tokens >= max_model_len) {
    throw ArgumentError(
        fmt::format("the prompt has {} tokens, which leaves no room for a new one within max_model_len {}",
                    prompt_tokens, max_model_len));
  }
  if (max_tokens > max_model_len - prompt_tokens) {
    throw ArgumentError(
        fmt::format("the prompt has {} tokens and max_tokens is {}: together they exceed max_model_len {}",
                    prompt_tokens, max_tokens, max_model_len));
  }
}

}  // namespace headway
