#include "engine/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace headway {

StopMatcher::StopMatcher(std::vector<std::string> stops, bool include_stop)
    : stops_(std::move(stops)), include_stop_(include_stop) {}

std::string StopMatcher::push(std::string_view piece) {
  if (matched_) return "";
  pending_ += piece;
  size_t end = std::string::npos;
  const std::string* first = nullptr;
  for (const std::string& stop : stops_) {
    const size_t begin = pending_.find(stop);
    if (begin == std::string::npos) continue;
    const size_t its_end = begin + stop.size();
    if (its_end > end || (its_end == end && stop.size() < first->size())) continue;
    end = its_end;
    first = &stop;
  }
  if (first == nullptr) return give_out(pending_.size() - held_back());
  matched_ = *first;
  std::string text = give_out(include_stop_ ? end : end - first->size());
  pending_.clear();
  return text;
}

std::string StopMatcher::pass(std::string_view piece) {
  pending_ += piece;
  return finish();
}

std::string StopMatcher::finish() {
  return std::exchange(pending_, {});
}

std::string StopMatcher::give_out(size_t bytes) {
  std::string text = pending_.substr(0, bytes);
  pending_.erase(0, bytes);
  return text;
}

/// Bytes at the end that a stop string may begin with.
size_t StopMatcher::held_back() const {
  size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (size_t length = std::min(stop.size() - 1, pending_.size()); length > longest; --length) {
      if (pending_.ends_with(std::string_view(stop).substr(0, length))) longest = length;
    }
  }
  return longest;
}

}  // namespace headway
