#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/definition.h"

namespace headway {

/// A stretch of text that is all trusted or all not. Runs follow each other without gaps.
struct TextRun {
  size_t end;
  bool trusted;  ///< special tokens count here; elsewhere they are plain text
};

/// A stretch of text: an added token, or plain text.
struct TextSegment {
  size_t begin;
  size_t end;
  std::optional<int32_t> token;
};

/// Finds added tokens in text: at each place the longest, from left to right. None crosses the border of two runs, so
/// that no untrusted text can complete a special token or swallow one.
class AddedTokenMatcher {
 public:
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }
  std::vector<TextSegment> split(std::string_view text, const std::vector<TextRun>& runs) const;

 private:
  const AddedToken* longest_at(std::string_view text, size_t position) const;
  void split_run(std::string_view text, size_t begin, const TextRun& run, std::vector<TextSegment>& segments) const;

  std::vector<AddedToken> tokens_;  // sorted by content
  std::array<bool, 256> first_bytes_{};
};

}  // namespace headway
