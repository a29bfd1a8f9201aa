#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headway/engine/text_generator.h"
#include "headway/tokenizer/tokenizer.h"

namespace headway {

struct Generation {
  std::vector<int32_t> token_ids;  ///< the new ones
  std::string text;                ///< theirs, or the ids joined by commas where the model has no tokenizer
  FinishReason finish_reason = FinishReason::length;
  int64_t prompt_tokens = 0;
  double prefill_seconds = 0;  ///< until the first new token
  double decode_seconds = 0;   ///< for the others

  double prefill_tokens_per_s() const;
  double decode_tokens_per_s() const;
};

/// Runs one request to its end on rank 0, and writes its text to standard output as it comes unless `silent`. Throws
/// Error if it ends with one.
Generation generate(LLMEngine& engine, const std::optional<Tokenizer>& tokenizer, const std::vector<int32_t>& prompt,
                    const TextParams& params, bool silent);

}  // namespace headway
