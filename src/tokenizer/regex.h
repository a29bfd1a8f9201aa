#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace headway {

/// Rewrites a pattern of the Oniguruma syntax, which tokenizer files use, to the same language in PCRE2's. Constructs
/// whose meaning differs between the two are refused by name: throws CheckpointError naming `source`.
std::string pcre2_pattern(std::string_view oniguruma_pattern, std::string_view source);

/// A compiled PCRE2 pattern with Unicode properties. Any thread may use it.
class Regex {
 public:
  /// Throws CheckpointError naming `source` if the pattern does not compile.
  Regex(const std::string& pattern, std::string_view source);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  struct Match {
    size_t begin;
    size_t end;
  };

  /// The first match at or after byte `offset` of `subject`, which must be valid UTF-8. Throws ArgumentError if the
  /// search exceeds PCRE2's limits.
  std::optional<Match> find(std::string_view subject, size_t offset = 0) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headway
