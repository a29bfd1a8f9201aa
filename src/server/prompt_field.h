#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "server/served_model.h"

namespace headway {

/// The prompts of a completion request: a text, a list of texts, a list of token ids, or a list of such lists. Throws
/// ApiError for an empty one, an id outside of the vocabulary, and text without a tokenizer.
std::vector<std::vector<int32_t>> read_prompts(const Json& prompt, const ServedModel& model);

}  // namespace headway
