#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/regex.h"

namespace headway {

/// Cuts text into the words that BPE works on.
class PreTokenizer {
 public:
  /// PCRE2 patterns; `source` is named in errors.
  PreTokenizer(const std::vector<std::string>& patterns, std::string_view source);

  /// The words of valid UTF-8 `text`, in order and without gaps: views into it.
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  std::vector<Regex> stages_;
};

}  // namespace headway
