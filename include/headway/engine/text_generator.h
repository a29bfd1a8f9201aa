#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headway/engine/llm_engine.h"
#include "headway/tokenizer/tokenizer.h"

namespace headway {

/// The most texts that one request may ask for.
constexpr int64_t kMaxTexts = 128;

/// What texts a request asks for.
struct TextParams {
  SamplingParams sampling;
  int64_t n = 1;                            ///< texts; each has its own sequence of random numbers
  std::vector<std::string> stop;            ///< strings that end a text, found across tokens after min_tokens
  bool include_stop_str_in_output = false;  ///< whether the stop string or stop token is part of the text
  bool skip_special_tokens = true;          ///< leave special tokens out of the text

  /// Throws ArgumentError naming the parameter, its value and what is legal.
  void validate() const;
};

/// What one step brought one text of a request.
struct TextOutput {
  int64_t index = 0;                       ///< of the text, from 0 to n - 1
  std::string text;                        ///< the new text, whole characters and nothing that a stop string takes back
  RequestOutput output;                    ///< tokens and how the text ended; `request` is what `add` returned
  std::optional<std::string> stop_string;  ///< which of `stop` ended the text
};

/// The seed of the `index`-th text of a request with this `seed`; the first one's is the seed itself.
uint64_t seed_of_text(uint64_t seed, int64_t index);

/// Texts on top of an engine's token ids: decoding, stop strings, several texts for a prompt. For rank 0.
class TextGenerator {
 public:
  /// Both must outlive the generator. Without a tokenizer texts are empty and stop strings are refused.
  TextGenerator(LLMEngine& engine, const Tokenizer* tokenizer);
  ~TextGenerator();
  TextGenerator(const TextGenerator&) = delete;
  TextGenerator& operator=(const TextGenerator&) = delete;

  /// Queues `params.n` texts. Throws as LLMEngine::add_request does, and then queues none.
  RequestId add(const std::vector<int32_t>& prompt, const TextParams& params);

  /// Ends all texts of a request without an output; false if they have ended already.
  bool cancel(RequestId request);

  bool has_unfinished() const;

  /// Steps the engine once. What came of requests that this generator did not add is lost.
  std::vector<TextOutput> step();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headway
