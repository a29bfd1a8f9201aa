#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "headway/tokenizer/tokenizer.h"

namespace headway {

/// Where a prompt comes from; one of text, file and token ids.
struct PromptOptions {
  std::optional<std::string> text;
  std::optional<std::filesystem::path> file;
  std::optional<std::string> token_ids;  ///< decimal, joined by commas
  bool chat = false;
  std::optional<std::string> system;
};

void add_prompt_options(CLI::App& app, PromptOptions& options);

/// The tokenizer of a model folder; none if the folder has neither tokenizer.json nor vocab.json.
std::optional<Tokenizer> find_tokenizer(const std::filesystem::path& folder);

/// The ids of the prompt. Throws UsageError if it is empty, an id is not in the vocabulary, or the folder lacks the
/// tokenizer or chat template that it takes.
std::vector<int32_t> prompt_token_ids(const PromptOptions& options, const std::filesystem::path& folder,
                                      const std::optional<Tokenizer>& tokenizer, int64_t vocab_size);

}  // namespace headway
