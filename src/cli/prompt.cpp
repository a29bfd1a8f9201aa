#include "cli/prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include "cli/errors.h"
#include "headway/tokenizer/chat_template.h"

namespace headway {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw UsageError(fmt::format("--prompt-file {} is a folder", path.string()));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) throw UsageError(fmt::format("--prompt-file {} cannot be read", path.string()));
  return text;
}

std::vector<int32_t> chat_ids(const PromptOptions& options, const std::filesystem::path& folder,
                              const Tokenizer& tokenizer, const std::string& text) {
  const auto chat_template = ChatTemplate::from_pretrained(folder);
  if (!chat_template) throw UsageError(fmt::format("--chat: {} has no chat template", folder.string()));
  std::vector<ChatMessage> messages;
  if (options.system) messages.push_back({"system", *options.system});
  messages.push_back({"user", text});
  return encode_chat(tokenizer, *chat_template, messages);
}

int32_t given_id(std::string_view text, int64_t vocab_size) {
  int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw UsageError(fmt::format("--token-ids: \"{}\" is not a whole number", text));
  }
  if (id < 0 || id >= vocab_size) {
    throw UsageError(fmt::format("--token-ids: {} is not in the vocabulary of {}", id, vocab_size));
  }
  return static_cast<int32_t>(id);
}

std::vector<int32_t> given_ids(std::string_view text, int64_t vocab_size) {
  std::vector<int32_t> ids;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    ids.push_back(given_id(text.substr(begin, end - begin), vocab_size));
    begin = end + 1;
  }
  return ids;
}

}  // namespace

void add_prompt_options(CLI::App& app, PromptOptions& options) {
  auto* source = app.add_option_group("Prompt", "What to continue");
  source->add_option("--prompt", options.text, "Text");
  source->add_option("--prompt-file", options.file, "File with the text");
  auto* ids = source->add_option("--token-ids", options.token_ids, "Token ids, e.g. 1,2,3");
  source->require_option(1);
  auto* chat = app.add_flag("--chat", options.chat, "Put the text into the model's chat template")->excludes(ids);
  app.add_option("--system", options.system, "System message of the chat")->needs(chat);
}

std::optional<Tokenizer> find_tokenizer(const std::filesystem::path& folder) {
  const bool any = std::filesystem::exists(folder / "tokenizer.json") || std::filesystem::exists(folder / "vocab.json");
  if (!any) return std::nullopt;
  return Tokenizer::from_pretrained(folder);
}

std::vector<int32_t> prompt_token_ids(const PromptOptions& options, const std::filesystem::path& folder,
                                      const std::optional<Tokenizer>& tokenizer, int64_t vocab_size) {
  if (options.token_ids) return given_ids(*options.token_ids, vocab_size);
  if (!tokenizer)
    throw UsageError(
        fmt::format("{} has neither tokenizer.json nor vocab.json; only --token-ids work", folder.string()));
  const std::string text = options.file ? read_file(*options.file) : *options.text;
  std::vector<int32_t> ids = options.chat ? chat_ids(options, folder, *tokenizer, text) : tokenizer->encode(text);
  if (ids.empty()) throw UsageError("the prompt is empty");
  return ids;
}

}  // namespace headway
