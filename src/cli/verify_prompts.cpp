#include "cli/verify_prompts.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <string>
#include <utility>

#include "base/json.h"
#include "cli/errors.h"
#include "cli/prompt.h"

namespace headway {
namespace {

using Ids = std::vector<int32_t>;

constexpr std::array<const char*, 5> kTexts{"The sky is blue because", "def fibonacci(n):\n",
                                            "In 1969, three astronauts",
                                            "Zwei Dinge sind unendlich:", "1, 2, 3, 5, 8, 13,"};
constexpr std::array<int64_t, 5> kLengths{1, 5, 16, 33, 70};

/// Ids that do not repeat soon and differ between prompts.
Ids scattered_ids(int64_t prompt, int64_t length, int64_t vocab_size) {
  Ids ids;
  for (int64_t i = 0; i < length; ++i) {
    ids.push_back(static_cast<int32_t>((i * i * 31 + i * 1009 + prompt * 577 + 5) % vocab_size));
  }
  return ids;
}

std::vector<Json> default_prompts(bool with_texts, int64_t vocab_size) {
  if (with_texts) return std::vector<Json>(kTexts.begin(), kTexts.end());
  std::vector<Json> prompts;
  for (size_t p = 0; p < kLengths.size(); ++p) {
    prompts.emplace_back(scattered_ids(static_cast<int64_t>(p), kLengths[p], vocab_size));
  }
  return prompts;
}

std::vector<Json> lines_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::vector<Json> lines;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.emplace_back(line);
  }
  if (!stream.eof()) throw UsageError(fmt::format("--prompts {} cannot be read", file.string()));
  return lines;
}

std::vector<Json> listed_prompts(const std::filesystem::path& file) {
  const Json list = read_json_file(file);
  if (!list.is_array()) throw UsageError(fmt::format("--prompts {} is no JSON list", file.string()));
  return std::vector<Json>(list.begin(), list.end());  // braces would nest the iterators
}

std::vector<Json> prompts_of(const std::filesystem::path& file) {
  std::vector<Json> prompts = file.extension() == ".json" ? listed_prompts(file) : lines_of(file);
  if (prompts.empty()) throw UsageError(fmt::format("--prompts {} holds no prompt", file.string()));
  return prompts;
}

bool is_id(const Json& json, int64_t vocab_size) {
  return json.is_number_integer() && json >= 0 && json < vocab_size;
}

Ids checked_ids(size_t index, const Json& list, int64_t vocab_size) {
  for (const Json& id : list) {
    if (is_id(id, vocab_size)) continue;
    throw UsageError(
        fmt::format("prompt {}: {} is not an id in the vocabulary of {}", index, dump_json(id), vocab_size));
  }
  return list.get<Ids>();
}

Ids ids_of(size_t index, const Json& prompt, const std::filesystem::path& folder,
           const std::optional<Tokenizer>& tokenizer, int64_t vocab_size) {
  if (prompt.is_array()) return checked_ids(index, prompt, vocab_size);
  if (!prompt.is_string()) throw UsageError(fmt::format("prompt {} is neither a text nor a list of ids", index));
  if (!tokenizer) {
    throw UsageError(
        fmt::format("prompt {} is a text, and {} has neither tokenizer.json nor vocab.json", index, folder.string()));
  }
  return tokenizer->encode(prompt.get<std::string>());
}

}  // namespace

std::vector<std::vector<int32_t>> verify_prompts(const std::optional<std::filesystem::path>& file,
                                                 const std::filesystem::path& model_folder, int64_t vocab_size) {
  const std::optional<Tokenizer> tokenizer = find_tokenizer(model_folder);
  const std::vector<Json> given = file ? prompts_of(*file) : default_prompts(tokenizer.has_value(), vocab_size);
  std::vector<Ids> prompts;
  for (size_t i = 0; i < given.size(); ++i) {
    prompts.push_back(ids_of(i, given[i], model_folder, tokenizer, vocab_size));
    if (prompts.back().empty()) throw UsageError(fmt::format("prompt {} is empty", i));
  }
  return prompts;
}

}  // namespace headway
