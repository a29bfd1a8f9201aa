#include "cli/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/terminal.h"

namespace headway {
namespace {

constexpr std::chrono::milliseconds kRedraw{50};
constexpr char kEraseLine[] = "\r\x1b[K";

}  // namespace

std::string readable_bytes(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string progress_line(const std::string& label, int64_t done, int64_t total, int width,
                          const ReadableAmount& readable) {
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1.0;
  const std::string tail = fmt::format("{:3.0f} % of {}", 100 * share, readable(total));
  const int room = width - static_cast<int>(label.size() + tail.size()) - 6;
  if (room < 4) return label + " " + tail;
  const int filled = static_cast<int>(share * room);
  const std::string bar = std::string(filled, '=') + (filled < room ? ">" : "");
  return fmt::format("{} [{:<{}}] {}", label, bar, room, tail);
}

ProgressBar::ProgressBar(std::string label, ReadableAmount readable)
    : label_(std::move(label)), readable_(std::move(readable)), on_terminal_(is_terminal(STDERR_FILENO)) {}

void ProgressBar::update(int64_t done, int64_t total) {
  if (!on_terminal_ || (Clock::now() < next_ && done < total)) return;
  const int width = std::min(terminal_width(STDERR_FILENO), 100);
  write_text(STDERR_FILENO, kEraseLine + progress_line(label_, done, total, width, readable_));
  drawn_ = true;
  next_ = Clock::now() + kRedraw;
}

void ProgressBar::finish(const std::string& summary) {
  write_line(STDERR_FILENO, (drawn_ ? kEraseLine : "") + summary);
}

}  // namespace headway
