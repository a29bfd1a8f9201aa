#pragma once

#include <cstdint>

namespace headway {

/// The half-open interval [begin, end).
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  bool contains(int64_t index) const { return begin <= index && index < end; }
  friend bool operator==(const Range&, const Range&) = default;
};

}  // namespace headway
