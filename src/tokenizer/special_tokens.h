#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tokenizer/json_field.h"

namespace headway {

/// Names as in "eos_token", each with its token's text.
using SpecialTokens = std::vector<std::pair<std::string, std::string>>;

/// Those that a tokenizer_config.json names, as text or as an object with `content`.
SpecialTokens special_tokens_of(const JsonField& tokenizer_config);

}  // namespace headway
