#include "tokenizer/pre_tokenizer.h"

#include "tokenizer/utf8.h"

namespace headway {
namespace {

/// Each match becomes a word, and so does what lies between two matches.
void split_by(const Regex& regex, std::string_view text, std::vector<std::string_view>& words) {
  size_t begin = 0;   // of the text that is in no word yet
  size_t search = 0;  // where the next match may begin
  while (search < text.size()) {
    const auto match = regex.find(text, search);
    if (!match) break;
    if (match->begin > begin) words.push_back(text.substr(begin, match->begin - begin));
    if (match->end > match->begin) words.push_back(text.substr(match->begin, match->end - match->begin));
    begin = match->end;
    search = match->end;
    if (match->end == match->begin && search < text.size()) search += read_utf8_unit(text, search).length;
  }
  if (begin < text.size()) words.push_back(text.substr(begin));
}

}  // namespace

PreTokenizer::PreTokenizer(const std::vector<std::string>& patterns, std::string_view source) {
  for (const std::string& pattern : patterns) stages_.emplace_back(pattern, source);
}

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
  std::vector<std::string_view> pieces{text};
  for (const Regex& stage : stages_) {
    std::vector<std::string_view> words;
    words.reserve(pieces.size() + text.size() / 4);
    for (const std::string_view piece : pieces) split_by(stage, piece, words);
    pieces = std::move(words);
  }
  return pieces;
}

}  // namespace headway
