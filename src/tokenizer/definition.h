#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headway {

struct TransparentStringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

/// Token text as the vocabulary writes it -> id.
using TokenIds = std::unordered_map<std::string, int32_t, TransparentStringHash, std::equal_to<>>;

/// A token that is looked for in the text itself, before it is cut into words.
struct AddedToken {
  std::string content;
  int32_t id;
  bool special;      ///< a control token, left out of decoded text on request
  bool normalized;   ///< looked for after normalization instead of before
  bool lstrip;       ///< takes the white space on its left with it
  bool rstrip;       ///< takes the white space on its right with it
  bool single_word;  ///< only where no word character touches it
};

/// Two neighbouring tokens that become one. A merge's rank is its place in the list; the lowest rank goes first.
struct Merge {
  int32_t left;
  int32_t right;
  int32_t merged;
};

/// What a tokenizer's files say, checked: every id is in range and names one token.
struct TokenizerDefinition {
  TokenIds vocabulary;  ///< without the added tokens that it does not list itself
  std::vector<AddedToken> added_tokens;
  std::array<int32_t, 256> byte_ids;  ///< the token of each byte; -1 for a byte that is left out of the ids
  std::vector<Merge> merges;
  bool ignore_merges = false;               ///< a word that is a token stays whole, whatever the merges make of it
  bool nfc = false;                         ///< text is brought to Unicode normalization form C
  std::vector<std::string> split_patterns;  ///< PCRE2; each cuts the pieces that the one before it left
};

}  // namespace headway
