#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headway/tokenizer/tokenizer.h"

namespace headway {

/// One message of a conversation; roles are those that the template knows, such as "system", "user", "assistant".
struct ChatMessage {
  std::string role;
  std::string content;
};

/// The Jinja template that comes with a model. Precedence: chat_template.jinja, then `chat_template` of
/// tokenizer_config.json (a template, or a list of named ones with a "default"). The template sees `messages`,
/// `add_generation_prompt`, the special tokens of tokenizer_config.json such as `bos_token`, and `tools` and
/// `documents` as none. The same messages give the same prompt, unless the template itself asks for today's date.
///
/// Any thread may use it.
class ChatTemplate {
 public:
  /// Nothing if the folder has no template; throws CheckpointError if it has one that does not parse.
  static std::optional<ChatTemplate> from_pretrained(const std::filesystem::path& folder);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// The prompt text of a conversation. Throws ArgumentError with the template's own message where it raises one.
  std::string render(const std::vector<ChatMessage>& messages, bool add_generation_prompt = true) const;

  /// The same in parts: trusted are the template's own text, special tokens, and the roles system, user, assistant,
  /// tool, developer and function. What comes from a message's content in any way is not.
  std::vector<TextPart> render_parts(const std::vector<ChatMessage>& messages, bool add_generation_prompt = true) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The ids of a conversation. They are those of the rendered prompt, but that a special token in a message's content is
/// plain text: no user can end a turn or begin another by writing its markers.
std::vector<int32_t> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                 const std::vector<ChatMessage>& messages, bool add_generation_prompt = true);

}  // namespace headway
