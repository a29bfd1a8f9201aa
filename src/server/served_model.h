#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headway/tokenizer/chat_template.h"
#include "headway/tokenizer/tokenizer.h"

namespace headway {

/// What is known of the model when requests are read.
struct ServedModel {
  std::vector<std::string> names;  ///< that requests may call it by; the first is its own
  std::optional<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  int64_t vocab_size = 0;
  int64_t max_model_len = 0;
};

}  // namespace headway
