#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headway {

/// Looks for stop strings in a text that comes in pieces. What could still be the beginning of one is held back, so no
/// part of a stop string is ever given out. The result does not depend on where the pieces are cut: the stop string
/// that is complete first decides, of several that end there the longest.
class StopMatcher {
 public:
  StopMatcher(std::vector<std::string> stops, bool include_stop);

  /// The text that `piece` settles; nothing more comes after a match.
  std::string push(std::string_view piece);

  /// The same without looking for stop strings in `piece` or in what is held back.
  std::string pass(std::string_view piece);

  /// What is held back when the text ends.
  std::string finish();

  const std::optional<std::string>& matched() const { return matched_; }

 private:
  std::string give_out(size_t bytes);
  size_t held_back() const;

  std::vector<std::string> stops_;
  bool include_stop_;
  std::string pending_;
  std::optional<std::string> matched_;
};

}  // namespace headway
