#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace headway {

/// "512 B", "27.3 MiB": bytes for people.
std::string readable_bytes(int64_t bytes);

/// How an amount is told to people.
using ReadableAmount = std::function<std::string(int64_t)>;

/// One line that shows how much of an amount is done, e.g. "loading [======>     ]  52 % of 1.2 GiB".
std::string progress_line(const std::string& label, int64_t done, int64_t total, int width,
                          const ReadableAmount& readable = readable_bytes);

/// Draws progress on standard error: a bar on a terminal, redrawn in place; elsewhere nothing until `finish`.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label, ReadableAmount readable = readable_bytes);
  void update(int64_t done, int64_t total);

  /// Replaces the bar by a plain line.
  void finish(const std::string& summary);

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  ReadableAmount readable_;
  bool on_terminal_;
  bool drawn_ = false;
  Clock::time_point next_ = Clock::now();
};

}  // namespace headway
