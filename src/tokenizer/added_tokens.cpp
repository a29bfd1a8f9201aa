#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "tokenizer/regex.h"
#include "tokenizer/utf8.h"

namespace headway {
namespace {

// Words and white space as the flags of an added token mean them: UTS #18's \w, and White_Space.
constexpr const char* kWordCharacter = R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}])";

bool matches(const Regex& regex, std::string_view character) {
  return regex.find(character).has_value();
}

bool is_word(std::string_view character) {
  static const Regex word(kWordCharacter, "added tokens");
  return matches(word, character);
}

bool is_space(std::string_view character) {
  static const Regex space(pcre2_pattern(R"(\s)", "added tokens"), "added tokens");
  return matches(space, character);
}

/// The character that begins at `position`, or ends there; empty at the ends of the text.
std::string_view character_after(std::string_view text, size_t position) {
  return position < text.size() ? text.substr(position, read_utf8_unit(text, position).length) : std::string_view();
}
std::string_view character_before(std::string_view text, size_t position) {
  size_t begin = position;
  while (begin > 0) {
    --begin;
    if ((static_cast<unsigned char>(text[begin]) & 0xC0) != 0x80) break;
  }
  return text.substr(begin, position - begin);
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  return !is_word(character_before(text, begin)) && !is_word(character_after(text, end));
}

/// Where the white space that ends at `position`, but not before `limit`, begins.
size_t skip_space_before(std::string_view text, size_t position, size_t limit) {
  while (position > limit && is_space(character_before(text, position))) {
    position -= character_before(text, position).size();
  }
  return position;
}

size_t skip_space_after(std::string_view text, size_t position) {
  while (is_space(character_after(text, position))) position += character_after(text, position).size();
  return position;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::ranges::sort(tokens_, {}, &AddedToken::content);
  for (const AddedToken& token : tokens_) first_bytes_[static_cast<unsigned char>(token.content[0])] = true;
}

/// Narrows the sorted tokens to those that begin as the text does, byte by byte.
const AddedToken* AddedTokenMatcher::longest_at(std::string_view text, size_t position) const {
  const AddedToken* longest = nullptr;
  auto begin = tokens_.begin();
  auto end = tokens_.end();
  for (size_t depth = 0; begin != end && position + depth < text.size(); ++depth) {
    const auto byte_at_depth = [depth](const AddedToken& token) -> int {
      return depth < token.content.size() ? static_cast<unsigned char>(token.content[depth]) : -1;
    };
    const int byte = static_cast<unsigned char>(text[position + depth]);
    begin = std::ranges::lower_bound(begin, end, byte, {}, byte_at_depth);
    end = std::ranges::upper_bound(begin, end, byte, {}, byte_at_depth);
    if (begin != end && begin->content.size() == depth + 1) longest = &*begin;
  }
  return longest;
}

void AddedTokenMatcher::split_run(std::string_view text, size_t begin, const TextRun& run,
                                  std::vector<TextSegment>& segments) const {
  const std::string_view searched = text.substr(0, run.end);
  for (size_t position = begin; position < run.end;) {
    const AddedToken* token =
        first_bytes_[static_cast<unsigned char>(text[position])] ? longest_at(searched, position) : nullptr;
    if (token == nullptr) {
      ++position;
      continue;
    }
    size_t from = position;
    size_t to = position + token->content.size();
    position = to;
    if (token->special && !run.trusted) continue;
    if (token->single_word && !stands_alone(text, from, to)) continue;
    const size_t taken = segments.empty() ? 0 : segments.back().end;
    if (token->lstrip) from = skip_space_before(text, from, taken);
    if (token->rstrip) to = skip_space_after(text, to);
    if (from > taken) segments.push_back({taken, from, std::nullopt});
    segments.push_back({std::max(from, taken), to, token->id});
  }
}

std::vector<TextSegment> AddedTokenMatcher::split(std::string_view text, const std::vector<TextRun>& runs) const {
  std::vector<TextSegment> segments;
  size_t begin = 0;
  for (const TextRun& run : runs) {
    split_run(text, begin, run, segments);
    begin = run.end;
  }
  const size_t taken = segments.empty() ? 0 : segments.back().end;
  if (taken < text.size()) segments.push_back({taken, text.size(), std::nullopt});
  return segments;
}

}  // namespace headway
