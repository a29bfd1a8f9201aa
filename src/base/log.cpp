#include "headway/base/log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>

namespace headway {
namespace {

constexpr std::array<std::string_view, 4> kNames{"debug", "info", "warning", "error"};

std::atomic<int> log_rank{-1};

void write_line(LogLevel level, std::string_view message) {
  std::string line = "headway";
  if (log_rank >= 0) line += " [rank " + std::to_string(log_rank) + "]";
  line += " " + std::string(kNames[static_cast<size_t>(level)]) + ": " + std::string(message) + "\n";
  // One write per line, so that lines of several ranks do not mix.
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

LogLevel threshold_from_environment() {
  const char* wanted = std::getenv("HEADWAY_LOG");
  if (wanted == nullptr || *wanted == '\0') return LogLevel::info;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == wanted) return static_cast<LogLevel>(i);
  }
  write_line(LogLevel::warning,
             "HEADWAY_LOG is \"" + std::string(wanted) + "\", not one of debug, info, warning, error; info is taken");
  return LogLevel::info;
}

}  // namespace

void set_log_rank(int global_rank) {
  log_rank = global_rank;
}

void log(LogLevel level, std::string_view message) {
  static const LogLevel threshold = threshold_from_environment();
  if (level < threshold) return;
  write_line(level, message);
}

}  // namespace headway
