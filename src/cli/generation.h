#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headway/engine/llm_engine.h"
#include "headway/tokenizer/tokenizer.h"

namespace headway {

/// The text of a request as its tokens come, or their ids where the model has no tokenizer. Written to standard
/// output at once unless `silent`.
class TextStream {
 public:
  TextStream(const std::optional<Tokenizer>& tokenizer, bool silent);

  void push(int32_t token);
  void finish();

  const std::string& text() const { return text_; }

 private:
  void emit(const std::string& piece);

  std::optional<IncrementalDecoder> decoder_;
  bool silent_;
  std::string text_;
};

struct Generation {
  std::vector<int32_t> token_ids;  ///< the new ones
  FinishReason finish_reason = FinishReason::length;
  int64_t prompt_tokens = 0;
  double prefill_seconds = 0;  ///< until the first new token
  double decode_seconds = 0;   ///< for the others

  double prefill_tokens_per_s() const;
  double decode_tokens_per_s() const;
};

/// Runs one request to its end on rank 0. Throws Error if it ends with one.
Generation generate(LLMEngine& engine, const std::vector<int32_t>& prompt, const SamplingParams& params,
                    TextStream& stream);

}  // namespace headway
