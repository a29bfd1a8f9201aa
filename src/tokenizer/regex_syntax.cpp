#include <fmt/format.h>

#include <array>
#include <cctype>

#include "headway/base/error.h"
#include "tokenizer/regex.h"

namespace headway {
namespace {

// Unicode's White_Space. PCRE2's own \s has U+180E besides.
constexpr std::string_view kWhiteSpace =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

// The kinds of groups that mean the same in both syntaxes, beside the plain one.
constexpr std::array<std::string_view, 7> kGroups{"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};

class Translator {
 public:
  Translator(std::string_view pattern, std::string_view source) : pattern_(pattern), source_(source) {}

  std::string translate() {
    while (!at_end()) {
      const char c = peek();
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        character_class();
      } else if (c == '(') {
        group();
      } else if (c == '{') {
        repetition();
      } else if (c == '.' || c == '^' || c == '$') {
        refuse(std::string_view(&c, 1));
      } else {
        copy(1);
      }
    }
    return std::move(result_);
  }

 private:
  bool at_end() const { return position_ == pattern_.size(); }
  std::string_view rest() const { return pattern_.substr(position_); }

  char peek() const {
    if (at_end()) throw CheckpointError(fmt::format("{}: pattern \"{}\" ends too early", source_, pattern_));
    return pattern_[position_];
  }

  void copy(size_t count) {
    result_ += pattern_.substr(position_, count);
    position_ += count;
  }

  [[noreturn]] void refuse(std::string_view construct) const {
    throw CheckpointError(
        fmt::format("{}: \"{}\" in the pattern \"{}\" is not supported", source_, construct, pattern_));
  }

  void escape(bool in_class) {
    ++position_;
    const char c = peek();
    if (c == 'p' || c == 'P') return property();
    ++position_;
    if (c == 's') {
      // Written out, the class would take a hyphen behind it for a range.
      if (in_class && rest().starts_with('-') && !rest().starts_with("-]")) refuse("\\s-");
      result_ += in_class ? std::string(kWhiteSpace) : fmt::format("[{}]", kWhiteSpace);
    } else if (c == 'S' && !in_class) {
      result_ += fmt::format("[^{}]", kWhiteSpace);
    } else if (c == 'd') {
      result_ += R"(\p{Nd})";
    } else if (c == 'r' || c == 'n' || c == 't' || std::ispunct(static_cast<unsigned char>(c)) != 0) {
      result_ += {'\\', c};
    } else {
      refuse(std::string{'\\', c});
    }
  }

  /// General categories mean the same to both; scripts do not, since PCRE2 counts script extensions in.
  void property() {
    const size_t end = rest().find('}');
    if (end == std::string_view::npos) refuse(rest());
    const std::string_view whole = rest().substr(0, end + 1);  // p{Lu}
    const std::string_view name = whole.substr(1);
    const bool category = (name.size() == 3 || name.size() == 4) && name[0] == '{' &&
                          std::string_view("LMNPSZ").find(name[1]) != std::string_view::npos &&
                          (name.size() == 3 || std::islower(static_cast<unsigned char>(name[2])) != 0);
    if (!category) refuse(fmt::format("\\{}", whole));
    result_ += '\\';
    copy(whole.size());
  }

  void character_class() {
    copy(1);
    if (peek() == '^') copy(1);
    if (peek() == ']') refuse("[]");
    while (peek() != ']') {
      if (peek() == '\\') {
        escape(true);
      } else if (peek() == '[') {
        refuse("[ inside a class");
      } else if (rest().starts_with("&&")) {
        refuse("&&");
      } else {
        copy(1);
      }
    }
    copy(1);
  }

  void group() {
    const std::string_view here = rest();
    if (here.size() < 2 || (here[1] != '?' && here[1] != '*')) return copy(1);
    for (const std::string_view known : kGroups) {
      if (here.starts_with(known)) return copy(known.size());
    }
    refuse(here.substr(0, 3));
  }

  /// {n}, {n,} and {n,m}. Without a lower bound, or followed by ? or +, the two engines disagree.
  void repetition() {
    const size_t end = rest().find('}');
    if (end == std::string_view::npos) refuse("{");
    const std::string_view bounds = rest().substr(1, end - 1);
    const bool plain = !bounds.empty() && std::isdigit(static_cast<unsigned char>(bounds[0])) != 0 &&
                       bounds.find_first_not_of("0123456789,") == std::string_view::npos;
    const std::string_view after = rest().substr(end + 1);
    if (!plain || after.starts_with('?') || after.starts_with('+')) refuse(rest().substr(0, end + 2));
    copy(end + 1);
  }

  std::string_view pattern_;
  std::string_view source_;
  size_t position_ = 0;
  std::string result_;
};

}  // namespace

std::string pcre2_pattern(std::string_view oniguruma_pattern, std::string_view source) {
  return Translator(oniguruma_pattern, source).translate();
}

}  // namespace headway
