#include "server/prompt_field.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/api_error.h"

namespace headway {
namespace {

constexpr size_t kMaxPrompts = 1024;

using TokenIds = std::vector<int32_t>;

[[noreturn]] void refuse(const std::string& message) {
  throw invalid_request("prompt", message);
}

int32_t read_id(const Json& id, int64_t vocab_size) {
  const bool fits = id.is_number_integer() && id >= 0 && id < vocab_size;
  if (!fits)
    refuse(fmt::format("prompt: {} is not a token id in 0 to {}", dump_json(id).substr(0, 80), vocab_size - 1));
  return id.get<int32_t>();
}

TokenIds read_ids(const Json& ids, int64_t vocab_size) {
  if (ids.empty()) refuse("prompt: a list of token ids is empty");
  TokenIds result;
  for (const Json& id : ids) result.push_back(read_id(id, vocab_size));
  return result;
}

TokenIds read_text(const std::string& text, const ServedModel& model) {
  if (!model.tokenizer) refuse("prompt: the model has no tokenizer, so that only token ids are served");
  TokenIds ids = model.tokenizer->encode(text);
  if (ids.empty()) refuse("prompt: a text is empty");
  return ids;
}

TokenIds read_one(const Json& prompt, const ServedModel& model) {
  if (prompt.is_string()) return read_text(prompt.get<std::string>(), model);
  if (prompt.is_array()) return read_ids(prompt, model.vocab_size);
  refuse(fmt::format("prompt: {} is neither a text nor a list of token ids", dump_json(prompt).substr(0, 80)));
}

}  // namespace

std::vector<TokenIds> read_prompts(const Json& prompt, const ServedModel& model) {
  const auto is_whole = [](const Json& item) { return item.is_string() || item.is_array(); };
  const bool several = prompt.is_array() && std::any_of(prompt.begin(), prompt.end(), is_whole);
  if (!several) return {read_one(prompt, model)};
  if (prompt.size() > kMaxPrompts) refuse(fmt::format("prompt has {} items, more than {}", prompt.size(), kMaxPrompts));
  std::vector<TokenIds> prompts;
  for (const Json& item : prompt) prompts.push_back(read_one(item, model));
  return prompts;
}

}  // namespace headway
