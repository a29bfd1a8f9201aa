#include "parallel/gloo/gloo_reason.h"

#include <algorithm>
#include <array>
#include <utility>

namespace headway {
namespace {

/// What Gloo's text holds, and what we say. The first that fits counts.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kKnown{{
    {"op.preamble.length <=", "the members sent and expected different numbers of bytes"},
    {"Received data size doesn't match", "the members sent and expected different numbers of bytes"},
    {"Application timeout caused pair closure", "the time limit of an earlier operation has passed"},
    {"Read timeout", "the time limit has passed"},
    {"Write timeout", "the time limit has passed"},
    {"Connect timeout", "a member could not be reached within the time limit"},
    {"Connection closed by peer", "a member closed its connection"},
    {"Socket unexpectedly closed", "a member closed its connection"},
    {"Connection reset by peer", "a member closed its connection"},
}};

/// Behind a leading "[/path/file.cc:123] " or "[enforce fail at /path/file.cc:123] ".
std::string_view behind_source_file(std::string_view text) {
  const size_t end = text.find("] ");
  const bool has_file = text.starts_with('[') && end != std::string_view::npos &&
                        text.substr(0, end).find(".cc:") != std::string_view::npos;
  return has_file ? text.substr(end + 2) : text;
}

/// "Timed out waiting 2000ms for recv operation to complete"
std::string time_limit(std::string_view behind_waiting) {
  const std::string_view number = behind_waiting.substr(0, behind_waiting.find_first_not_of("0123456789"));
  return number.empty() ? "the time limit has passed" : "the time limit of " + std::string(number) + " ms has passed";
}

}  // namespace

std::string gloo_reason(std::string_view text) {
  constexpr std::string_view kTimedOut = "Timed out waiting ";
  const size_t timed_out = text.find(kTimedOut);
  if (timed_out != std::string_view::npos) return time_limit(text.substr(timed_out + kTimedOut.size()));
  const auto known =
      std::ranges::find_if(kKnown, [&](const auto& entry) { return text.find(entry.first) != std::string_view::npos; });
  return std::string(known != kKnown.end() ? known->second : behind_source_file(text));
}

}  // namespace headway
