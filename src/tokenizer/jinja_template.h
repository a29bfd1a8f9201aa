#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headway/tokenizer/chat_template.h"
#include "headway/tokenizer/tokenizer.h"

namespace headway {

/// A parsed Jinja template. Any thread may render it.
class JinjaTemplate {
 public:
  /// `origin` names the template in errors. Throws CheckpointError if it does not parse.
  JinjaTemplate(const std::string& source, std::string origin);
  ~JinjaTemplate();
  JinjaTemplate(JinjaTemplate&&) noexcept;

  struct Variables {
    const std::vector<ChatMessage>& messages;
    bool add_generation_prompt;
    const std::vector<std::pair<std::string, std::string>>& special_tokens;  ///< such as bos_token, and its text
  };

  /// Trusted is what the template spells out, the special tokens, and the roles that chat templates know. Throws
  /// ArgumentError with the template's own message where it raises one.
  std::vector<TextPart> render(const Variables& variables) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headway
