#include "tokenizer/jinja_template.h"

#include <fmt/format.h>
#include <jinja/parser.h>
#include <jinja/runtime.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "headway/base/error.h"

namespace headway {
namespace {

constexpr size_t kSourceLimit = size_t{1} << 20;
// The engine parses, runs and frees a template recursively. Templates of real models stay below a fifth of these.
constexpr int kNestingLimit = 100;
constexpr int kTagLengthLimit = 3000;

constexpr std::array<std::string_view, 6> kKnownRoles{"system", "user", "assistant", "tool", "developer", "function"};

constexpr std::array<std::string_view, 5> kBlocks{"if", "for", "macro", "call", "filter"};
constexpr std::array<std::string_view, 6> kBlockEnds{"endif", "endfor", "endmacro", "endcall", "endfilter", "endset"};

/// Refuses tokens that would make the engine recurse without bound: nested tags, chains of elif, nested brackets, and
/// long expressions.
class NestingCheck {
 public:
  NestingCheck(const std::vector<jinja::token>& tokens, const std::string& origin) : tokens_(tokens), origin_(origin) {}

  void check() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const auto type = tokens_[i].t;
      if (type == Token::open_statement) count_tag(i + 1);
      count_bracket(type);
      tag_length_ = type == Token::open_statement || type == Token::open_expression ? 0 : tag_length_ + 1;
      if (nesting_ > kNestingLimit || brackets_ > kNestingLimit || tag_length_ > kTagLengthLimit) {
        throw CheckpointError(fmt::format("{}: the template is nested too deeply at byte {}", origin_, tokens_[i].pos));
      }
    }
  }

 private:
  using Token = jinja::token;

  void count_tag(size_t name_index) {
    if (name_index == tokens_.size()) return;
    const std::string& name = tokens_[name_index].value;
    if (std::ranges::find(kBlocks, name) != kBlocks.end() || (name == "set" && !assigns(name_index))) {
      open_.push_back(nesting_++);
    } else if (name == "elif") {
      ++nesting_;
    } else if (std::ranges::find(kBlockEnds, name) != kBlockEnds.end() && !open_.empty()) {
      nesting_ = open_.back();
      open_.pop_back();
    }
  }

  /// Whether a set tag has its value inside; otherwise it is a block that ends with endset.
  bool assigns(size_t name_index) const {
    for (size_t i = name_index; i < tokens_.size() && tokens_[i].t != Token::close_statement; ++i) {
      if (tokens_[i].t == Token::equals) return true;
    }
    return false;
  }

  void count_bracket(Token::type type) {
    if (type == Token::open_paren || type == Token::open_square_bracket || type == Token::open_curly_bracket) {
      ++brackets_;
    } else if (type == Token::close_paren || type == Token::close_square_bracket ||
               type == Token::close_curly_bracket) {
      --brackets_;
    }
  }

  const std::vector<jinja::token>& tokens_;
  const std::string& origin_;
  std::vector<int> open_;  // the nesting outside each open block
  int nesting_ = 0;
  int brackets_ = 0;
  int tag_length_ = 0;
};

jinja::value text_value(const std::string& text, bool trusted) {
  return jinja::mk_val<jinja::value_string>(jinja::string(text, !trusted));
}

jinja::value message_value(const ChatMessage& message) {
  const bool known_role = std::ranges::find(kKnownRoles, message.role) != kKnownRoles.end();
  auto object = jinja::mk_val<jinja::value_object>();
  object->insert("role", text_value(message.role, known_role));
  object->insert("content", text_value(message.content, false));
  return object;
}

/// What an engine's error says without its excerpt of the source.
std::string message_of(const std::exception& error) {
  constexpr std::string_view kBeforeMessage = "\nError: ";
  constexpr std::string_view kRaised = "Jinja Exception: ";
  std::string_view text = error.what();
  if (const size_t found = text.rfind(kBeforeMessage); found != std::string_view::npos) {
    text.remove_prefix(found + kBeforeMessage.size());
  }
  if (text.starts_with(kRaised)) text.remove_prefix(kRaised.size());
  return std::string(text);
}

}  // namespace

struct JinjaTemplate::Impl {
  std::string origin;
  std::string source;
  jinja::program program;
};

JinjaTemplate::JinjaTemplate(const std::string& source, std::string origin) {
  if (source.size() > kSourceLimit) {
    throw CheckpointError(
        fmt::format("{}: a template of {} bytes, more than the {} accepted", origin, source.size(), kSourceLimit));
  }
  try {
    jinja::lexer lexer;
    const jinja::lexer_result tokens = lexer.tokenize(source);
    NestingCheck(tokens.tokens, origin).check();
    jinja::program program = jinja::parse_from_tokens(tokens);
    impl_ = std::make_unique<Impl>(Impl{std::move(origin), tokens.source, std::move(program)});
  } catch (const CheckpointError&) {
    throw;
  } catch (const std::exception& error) {
    throw CheckpointError(fmt::format("{}: the template does not parse: {}", origin, error.what()));
  }
}

JinjaTemplate::~JinjaTemplate() = default;
JinjaTemplate::JinjaTemplate(JinjaTemplate&&) noexcept = default;

std::vector<TextPart> JinjaTemplate::render(const Variables& variables) const {
  jinja::context context(impl_->source);
  auto messages = jinja::mk_val<jinja::value_array>();
  for (const ChatMessage& message : variables.messages) messages->push_back(message_value(message));
  context.set_val("messages", messages);
  context.set_val("add_generation_prompt", jinja::mk_val<jinja::value_bool>(variables.add_generation_prompt));
  for (const char* absent : {"tools", "documents"}) context.set_val(absent, jinja::mk_val<jinja::value_none>());
  for (const auto& [name, text] : variables.special_tokens) context.set_val(name, text_value(text, true));

  std::vector<TextPart> parts;
  try {
    const jinja::value rendered = jinja::runtime(context).execute(impl_->program);
    const jinja::value_string joined = jinja::runtime::gather_string_parts(rendered);
    for (const jinja::string_part& part : joined->val_str.parts) {
      parts.push_back({part.val, !part.is_input});
    }
  } catch (const std::exception& error) {
    throw ArgumentError(
        fmt::format("{}: the conversation does not fit the chat template: {}", impl_->origin, message_of(error)));
  }
  return parts;
}

}  // namespace headway
