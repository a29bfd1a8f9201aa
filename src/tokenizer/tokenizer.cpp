#include "headway/tokenizer/tokenizer.h"

#include <utility>

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/utf8.h"

namespace headway {
namespace {

/// What an id stands for; the default for ids without a token.
struct Token {
  std::string bytes;
  bool special = false;
};

std::vector<Token> tokens_by_id(const TokenizerDefinition& definition) {
  std::vector<Token> tokens;
  const auto at = [&](int32_t id) -> Token& {
    if (static_cast<size_t>(id) >= tokens.size()) tokens.resize(static_cast<size_t>(id) + 1);
    return tokens[static_cast<size_t>(id)];
  };
  for (const auto& [text, id] : definition.vocabulary) at(id).bytes = bytes_of_token(text);
  for (const AddedToken& added : definition.added_tokens) at(added.id) = {bytes_of_token(added.content), added.special};
  return tokens;
}

TokenIds ids_by_text(TokenizerDefinition& definition) {
  TokenIds ids = std::move(definition.vocabulary);
  for (const AddedToken& added : definition.added_tokens) ids.emplace(added.content, added.id);
  return ids;
}

std::vector<AddedToken> added_tokens(const TokenizerDefinition& definition, bool normalized) {
  std::vector<AddedToken> tokens;
  for (const AddedToken& token : definition.added_tokens) {
    if (token.normalized != normalized) continue;
    tokens.push_back(token);
    if (normalized && definition.nfc) tokens.back().content = to_nfc(token.content);
  }
  return tokens;
}

/// The part of `runs` that covers [begin, end), counted from `begin`.
std::vector<TextRun> runs_within(const std::vector<TextRun>& runs, size_t begin, size_t end) {
  std::vector<TextRun> within;
  for (const TextRun& run : runs) {
    if (run.end <= begin) continue;
    within.push_back({std::min(run.end, end) - begin, run.trusted});
    if (run.end >= end) break;
  }
  return within;
}

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(TokenizerDefinition definition)
      : tokens(tokens_by_id(definition)),
        nfc(definition.nfc),
        raw_added_tokens(added_tokens(definition, false)),
        normalized_added_tokens(added_tokens(definition, true)),
        pre_tokenizer(definition.split_patterns, "tokenizer.json"),
        encoder(definition),
        ids(ids_by_text(definition)) {}

  /// `text` must be valid UTF-8.
  std::vector<int32_t> encode(std::string_view text, const std::vector<TextRun>& runs) const {
    std::vector<int32_t> output;
    output.reserve(text.size() / 3);
    for (const TextSegment& segment : raw_added_tokens.split(text, runs)) {
      if (segment.token) {
        output.push_back(*segment.token);
      } else {
        const std::string_view plain = text.substr(segment.begin, segment.end - segment.begin);
        encode_unnormalized(plain, runs_within(runs, segment.begin, segment.end), output);
      }
    }
    return output;
  }

  void encode_unnormalized(std::string_view text, const std::vector<TextRun>& runs,
                           std::vector<int32_t>& output) const {
    if (!nfc) return encode_normalized(text, runs, output);
    const std::string normalized = to_nfc(text);
    // A tokenizer with a normalizer looks for no special token in normalized text, so trust does not matter there.
    encode_normalized(normalized, {{normalized.size(), false}}, output);
  }

  void encode_normalized(std::string_view text, const std::vector<TextRun>& runs, std::vector<int32_t>& output) const {
    for (const TextSegment& segment : normalized_added_tokens.split(text, runs)) {
      if (segment.token) {
        output.push_back(*segment.token);
        continue;
      }
      for (const std::string_view word : pre_tokenizer.split(text.substr(segment.begin, segment.end - segment.begin))) {
        encoder.encode(word, output);
      }
    }
  }

  const Token& token(int32_t id) const {
    static const Token none;
    return id >= 0 && static_cast<size_t>(id) < tokens.size() ? tokens[static_cast<size_t>(id)] : none;
  }

  std::vector<Token> tokens;
  bool nfc;
  AddedTokenMatcher raw_added_tokens;
  AddedTokenMatcher normalized_added_tokens;
  PreTokenizer pre_tokenizer;
  BytePairEncoder encoder;
  TokenIds ids;
  std::optional<int32_t> eos;
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::from_pretrained(const std::filesystem::path& folder) {
  Tokenizer tokenizer(std::make_unique<Impl>(read_tokenizer_files(folder)));
  for (const auto& [name, token] : read_special_tokens(folder)) {
    if (name == "eos_token") tokenizer.impl_->eos = tokenizer.token_id(token);
  }
  return tokenizer;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool parse_special) const {
  return encode_parts({{std::string(text), parse_special}});
}

std::vector<int32_t> Tokenizer::encode_parts(const std::vector<TextPart>& parts) const {
  std::string text;
  std::vector<TextRun> runs;
  for (size_t i = 0; i < parts.size();) {
    // Neighbours of one kind are joined first: a character may be cut between them.
    std::string run;
    const bool trusted = parts[i].trusted;
    for (; i < parts.size() && parts[i].trusted == trusted; ++i) run += parts[i].text;
    text += to_valid_utf8(std::move(run));
    runs.push_back({text.size(), trusted});
  }
  return impl_->encode(text, runs);
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids, bool skip_special) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (!(skip_special && is_special(id))) bytes += impl_->token(id).bytes;
  }
  return to_valid_utf8(std::move(bytes));
}

std::string Tokenizer::token_bytes(int32_t id) const {
  return impl_->token(id).bytes;
}

std::optional<int32_t> Tokenizer::token_id(std::string_view token) const {
  const auto found = impl_->ids.find(token);
  return found == impl_->ids.end() ? std::nullopt : std::optional<int32_t>(found->second);
}

bool Tokenizer::is_special(int32_t id) const {
  return impl_->token(id).special;
}

std::optional<int32_t> Tokenizer::eos_token_id() const {
  return impl_->eos;
}

int32_t Tokenizer::vocab_size() const {
  return static_cast<int32_t>(impl_->tokens.size());
}

}  // namespace headway
