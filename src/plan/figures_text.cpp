#include "plan/figures_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace headway {
namespace {

constexpr size_t kLongestPlainList = 8;

bool is_run(const RankList& ranks) {
  return static_cast<size_t>(ranks.back().value - ranks.front().value) == ranks.size() - 1;
}

/// Three significant digits, but never an exponent.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  return size >= 9.995 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

}  // namespace

std::string grouped(int64_t number) {
  std::string digits = fmt::format("{}", number);
  const size_t first = digits.front() == '-' ? 1 : 0;
  for (size_t end = digits.size(); end > first + 3; end -= 3) digits.insert(end - 3, ",");
  return digits;
}

std::string bytes_text(int64_t bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1024;
  return fmt::format("{} {}", three_digits(value), units[unit]);
}

std::string seconds_text(double seconds) {
  if (seconds >= 1) return three_digits(seconds) + " s";
  if (seconds >= 1e-3) return three_digits(seconds * 1e3) + " ms";
  return three_digits(seconds * 1e6) + " us";
}

std::string percent_text(double fraction) {
  return fmt::format("{:+.1f} %", fraction * 100);
}

std::string range_text(const Range& range) {
  return fmt::format("[{}, {})", range.begin, range.end);
}

std::string ranks_text(const RankList& ranks) {
  if (ranks.size() > 4 && is_run(ranks)) return fmt::format("[{}-{}]", ranks.front().value, ranks.back().value);
  std::string text = "[";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i == kLongestPlainList && ranks.size() > kLongestPlainList + 1) {
      return text + fmt::format(" ... {}]", ranks.back().value);
    }
    text += fmt::format("{}{}", i == 0 ? "" : " ", ranks[i].value);
  }
  return text + "]";
}

std::string groups_text(const std::vector<RankList>& groups, size_t shown) {
  std::string text;
  for (size_t i = 0; i < groups.size() && i < shown; ++i) text += (i == 0 ? "" : " ") + ranks_text(groups[i]);
  if (groups.size() > shown) text += fmt::format(" and {} more", groups.size() - shown);
  return text;
}

}  // namespace headway
