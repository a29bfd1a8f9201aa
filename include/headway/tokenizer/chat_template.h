#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headway {

struct ChatMessage {
  std::string role;
  std::string content;
};

/// The Jinja template that comes with a model. Precedence: chat_template.jinja, then `chat_template` of
/// tokenizer_config.json.
class ChatTemplate {
 public:
  /// Nothing if the folder has no template; throws CheckpointError if it has one that does not parse.
  static std::optional<ChatTemplate> from_pretrained(const std::filesystem::path& folder);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// The prompt text of a conversation. Throws ArgumentError with the template's own message where it raises one.
  std::string render(const std::vector<ChatMessage>& messages, bool add_generation_prompt = true) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace headway
