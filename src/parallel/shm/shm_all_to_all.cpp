#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "headway/base/range.h"
#include "parallel/shm/shm_collectives.h"

namespace headway {
namespace {

/// A member's tensor is sent as it lies in memory, in windows of a slot. Before the first window stands what the
/// member sends to each other one and expects from it, so that everyone knows where in which window its part is.
class AllToAll {
 public:
  AllToAll(ShmGroup& group, const std::vector<size_t>& output_bytes, const std::vector<size_t>& input_bytes)
      : group_(group), output_bytes_(output_bytes), input_bytes_(input_bytes) {}

  void run(std::byte* output, const std::byte* input) {
    int64_t windows = 1;
    for (int64_t w = 0; w < windows; ++w) {
      send_window(w, input);
      group_.meet(call_);
      if (w == 0) {
        check_sizes();
        windows = plan();
        copy_own_part(output, input);
      }
      receive_window(w, output);
    }
  }

 private:
  int64_t header_bytes() const { return 2 * group_.size() * sizeof(uint64_t); }

  Range window(int64_t index) const {
    const int64_t slot = group_.slot_bytes();
    return {std::max<int64_t>(0, index * slot - header_bytes()), (index + 1) * slot - header_bytes()};
  }

  int64_t header_in(int64_t index) const { return index == 0 ? header_bytes() : 0; }

  static Range overlap(const Range& a, const Range& b) {
    const int64_t begin = std::max(a.begin, b.begin);
    return {begin, std::max(begin, std::min(a.end, b.end))};
  }

  void send_window(int64_t index, const std::byte* input) {
    std::byte* slot = group_.begin_step(call_);
    if (index == 0) {
      auto* sizes = reinterpret_cast<uint64_t*>(slot);
      std::copy(input_bytes_.begin(), input_bytes_.end(), sizes);
      std::copy(output_bytes_.begin(), output_bytes_.end(), sizes + group_.size());
    }
    const int64_t total = std::accumulate(input_bytes_.begin(), input_bytes_.end(), int64_t{0});
    const Range bytes = overlap(window(index), {0, total});
    if (!bytes.empty()) std::memcpy(slot + header_in(index), input + bytes.begin, bytes.size());
  }

  uint64_t sent(int from, int to) const { return reinterpret_cast<const uint64_t*>(group_.slot_of(from))[to]; }
  uint64_t expected(int by, int from) const {
    return reinterpret_cast<const uint64_t*>(group_.slot_of(by))[group_.size() + from];
  }

  /// Every member checks all pairs, so that all fail together.
  void check_sizes() const {
    for (int from = 0; from < group_.size(); ++from) {
      for (int to = 0; to < group_.size(); ++to) {
        if (sent(from, to) == expected(to, from)) continue;
        group_.fail(call_, fmt::format("group rank {} sends {} bytes to group rank {}, which expects {}", from,
                                       sent(from, to), to, expected(to, from)));
      }
    }
  }

  /// Notes where each member's part for this one lies; returns the number of windows of the longest tensor.
  int64_t plan() {
    int64_t windows = 1;
    for (int from = 0; from < group_.size(); ++from) {
      int64_t total = 0;
      for (int to = 0; to < group_.size(); ++to) {
        if (to == group_.self()) parts_.push_back({total, total + static_cast<int64_t>(sent(from, to))});
        total += static_cast<int64_t>(sent(from, to));
      }
      while (window(windows - 1).end < total) ++windows;
    }
    return windows;
  }

  void copy_own_part(std::byte* output, const std::byte* input) const {
    const Range own = parts_[group_.self()];
    int64_t offset = 0;
    for (int from = 0; from < group_.self(); ++from) offset += parts_[from].size();
    if (!own.empty()) std::memcpy(output + offset, input + own.begin, own.size());
  }

  void receive_window(int64_t index, std::byte* output) const {
    const Range bytes = window(index);
    for (int from = 0; from < group_.size(); ++from) {
      const Range& part = parts_[from];
      const Range here = overlap(bytes, part);
      if (from != group_.self() && !here.empty()) {
        const std::byte* source = group_.slot_of(from) + header_in(index) + (here.begin - bytes.begin);
        std::memcpy(output + (here.begin - part.begin), source, here.size());
      }
      output += part.size();
    }
  }

  ShmGroup& group_;
  const std::vector<size_t>& output_bytes_;
  const std::vector<size_t>& input_bytes_;
  const CollectiveCall call_{.kind = CollectiveKind::all_to_all};
  std::vector<Range> parts_;  ///< of each member's tensor, the bytes meant for this one
};

}  // namespace

void ShmCollectives::all_to_all(void* output, const void* input, const std::vector<size_t>& output_bytes,
                                const std::vector<size_t>& input_bytes) {
  AllToAll(group_, output_bytes, input_bytes)
      .run(static_cast<std::byte*>(output), static_cast<const std::byte*>(input));
}

}  // namespace headway
