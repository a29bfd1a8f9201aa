#include "parallel/gloo/gloo_reason.h"

#include <algorithm>
#include <array>
#include <utility>

namespace headway {
namespace {

/// What Gloo's text holds, and what we say. The first that fits counts.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kKnown{{
    {"op.preamble.length <=", "the members sent and expected different numbers of bytes"},
    {"Received data size doesn't match", "the members sent and expected different numbers of bytes"},
    {"Timed out waiting", "the time limit has passed"},
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

}  // namespace

std::string gloo_reason(std::string_view text) {
  const auto known =
      std::ranges::find_if(kKnown, [&](const auto& entry) { return text.find(entry.first) != std::string_view::npos; });
  return std::string(known != kKnown.end() ? known->second : behind_source_file(text));
}

}  // namespace headway
