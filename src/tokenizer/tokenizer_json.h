#pragma once

#include "tokenizer/definition.h"
#include "tokenizer/json_field.h"

namespace headway {

/// How Qwen2 cuts text into words, in the syntax of tokenizer.json.
inline constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Checks the content of a tokenizer.json and takes out what encoding and decoding need. Its `truncation` and `padding`
/// are left aside: they belong to training batches.
TokenizerDefinition parse_tokenizer_json(const JsonField& file);

}  // namespace headway
