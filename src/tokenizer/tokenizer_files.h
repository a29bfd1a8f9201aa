#pragma once

#include <filesystem>

#include "tokenizer/definition.h"
#include "tokenizer/special_tokens.h"

namespace headway {

/// Reads tokenizer.json of `folder`; where there is none, vocab.json and merges.txt of a Qwen2 tokenizer. Throws
/// CheckpointError naming the file and the entry for what is malformed or not supported.
TokenizerDefinition read_tokenizer_files(const std::filesystem::path& folder);

/// Those of the folder's tokenizer_config.json; none where it has no such file.
SpecialTokens read_special_tokens(const std::filesystem::path& folder);

}  // namespace headway
