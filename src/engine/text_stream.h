#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/stop_matcher.h"
#include "headway/engine/text_generator.h"

namespace headway {

/// One text as its tokens come.
class TextStream {
 public:
  TextStream(const Tokenizer* tokenizer, const TextParams& params);

  /// The text that `output` settles. Sets `stop_string`, and `finish_reason` to stop, if it holds a stop string.
  TextOutput take(RequestOutput output);

 private:
  std::string decode(const RequestOutput& output);
  std::string settle(const std::string& piece);

  std::optional<IncrementalDecoder> decoder_;
  StopMatcher matcher_;
  int64_t min_tokens_;
  bool include_stop_;
  int64_t tokens_ = 0;
};

}  // namespace headway
