#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace headway {

/// An operation that was timed, in nanoseconds of the host's monotonic clock, which all its processes share.
struct TraceEvent {
  std::string name;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

int64_t monotonic_ns();

/// Collects the operations of this process for as long as it lives. One at a time: another throws ArgumentError.
class TraceRecorder {
 public:
  TraceRecorder();
  ~TraceRecorder();
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  static TraceRecorder* current() { return current_.load(std::memory_order_relaxed); }

  void add(TraceEvent event);

  /// What was recorded so far, in the order in which it ended.
  std::vector<TraceEvent> take();

 private:
  static std::atomic<TraceRecorder*> current_;

  std::mutex mutex_;
  std::vector<TraceEvent> events_;
};

/// Times the scope it stands in, if someone records. `name` is a function that is called only then.
class TraceSpan {
 public:
  template <typename Name>
  explicit TraceSpan(const Name& name) : recorder_(TraceRecorder::current()) {
    if (recorder_ == nullptr) return;
    event_.name = name();
    event_.begin_ns = monotonic_ns();
  }
  ~TraceSpan() {
    if (recorder_ != nullptr) end();
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  void end();

  TraceRecorder* recorder_;
  TraceEvent event_;
};

}  // namespace headway
