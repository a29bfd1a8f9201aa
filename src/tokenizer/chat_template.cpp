#include "headway/tokenizer/chat_template.h"

#include <fmt/format.h>

#include <fstream>

#include "headway/base/error.h"
#include "tokenizer/jinja_template.h"
#include "tokenizer/json_field.h"
#include "tokenizer/special_tokens.h"

namespace headway {
namespace {

/// `chat_template` is a template or a list of named ones.
std::optional<std::string> template_of(const JsonField& config) {
  const auto entry = config.find("chat_template");
  if (!entry) return std::nullopt;
  if (entry->json().is_string()) return entry->string();
  std::string names;
  for (size_t i = 0; i < entry->size(); ++i) {
    const std::string& name = entry->at(i).at("name").string();
    if (name == "default") return entry->at(i).at("template").string();
    names += (names.empty() ? "" : ", ") + name;
  }
  entry->fail(fmt::format("has no template of the name \"default\", only: {}", names));
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw CheckpointError(fmt::format("{}: cannot be opened", path.string()));
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

}  // namespace

struct ChatTemplate::Impl {
  JinjaTemplate jinja;
  SpecialTokens special_tokens;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::optional<ChatTemplate> ChatTemplate::from_pretrained(const std::filesystem::path& folder) {
  const std::filesystem::path jinja_path = folder / "chat_template.jinja";
  const std::filesystem::path config_path = folder / "tokenizer_config.json";
  const bool has_config = std::filesystem::exists(config_path);
  const Json json = has_config ? read_json_file(config_path) : Json::object();
  const JsonField config(json, config_path.string());

  std::optional<std::string> source;
  std::string origin;
  if (std::filesystem::exists(jinja_path)) {
    source = read_text(jinja_path);
    origin = jinja_path.string();
  } else {
    source = template_of(config);
    origin = config_path.string();
  }
  if (!source) return std::nullopt;
  return ChatTemplate(std::make_unique<Impl>(Impl{JinjaTemplate(*source, origin), special_tokens_of(config)}));
}

std::vector<TextPart> ChatTemplate::render_parts(const std::vector<ChatMessage>& messages,
                                                 bool add_generation_prompt) const {
  return impl_->jinja.render({messages, add_generation_prompt, impl_->special_tokens});
}

std::string ChatTemplate::render(const std::vector<ChatMessage>& messages, bool add_generation_prompt) const {
  std::string prompt;
  for (const TextPart& part : render_parts(messages, add_generation_prompt)) prompt += part.text;
  return prompt;
}

std::vector<int32_t> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                 const std::vector<ChatMessage>& messages, bool add_generation_prompt) {
  return tokenizer.encode_parts(chat_template.render_parts(messages, add_generation_prompt));
}

}  // namespace headway
