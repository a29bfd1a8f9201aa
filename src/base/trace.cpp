#include "base/trace.h"

#include <chrono>
#include <utility>

#include "headway/base/error.h"

namespace headway {

std::atomic<TraceRecorder*> TraceRecorder::current_{nullptr};

int64_t monotonic_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TraceRecorder::TraceRecorder() {
  TraceRecorder* none = nullptr;
  if (!current_.compare_exchange_strong(none, this)) throw ArgumentError("operations are being recorded already");
}

TraceRecorder::~TraceRecorder() {
  current_ = nullptr;
}

void TraceRecorder::add(TraceEvent event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
}

std::vector<TraceEvent> TraceRecorder::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

void TraceSpan::end() {
  event_.end_ns = monotonic_ns();
  recorder_->add(std::move(event_));
}

}  // namespace headway
