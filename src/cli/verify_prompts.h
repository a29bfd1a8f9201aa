#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace headway {

/// The prompts to verify with, as token ids. `file` holds one prompt a line or, if its name ends in .json, a list whose
/// entries are texts or lists of token ids. Without a file: five short texts, or for a folder without a tokenizer five
/// runs of ids. Throws UsageError naming the prompt that is empty or has an id outside of the vocabulary.
std::vector<std::vector<int32_t>> verify_prompts(const std::optional<std::filesystem::path>& file,
                                                 const std::filesystem::path& model_folder, int64_t vocab_size);

}  // namespace headway
