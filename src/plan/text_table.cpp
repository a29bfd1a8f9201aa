#include "plan/text_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace headway {
namespace {

/// Characters that a terminal shows: neither colour codes nor continuation bytes of UTF-8.
size_t shown_width(std::string_view text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size());
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++width;
    }
  }
  return width;
}

bool all_empty(const std::vector<std::string>& row) {
  return std::all_of(row.begin(), row.end(), [](const std::string& cell) { return cell.empty(); });
}

}  // namespace

std::string Palette::wrap(std::string_view code, std::string_view text) const {
  return colours_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::string TextTable::text(const Palette& palette) const {
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], shown_width(row[c]));
  }
  std::string text;
  for (size_t r = 0; r < rows_.size(); ++r) {
    if (r == 0 && all_empty(rows_[r])) continue;
    std::string line;
    for (size_t c = 0; c < rows_[r].size(); ++c) {
      const std::string padding(widths[c] - shown_width(rows_[r][c]), ' ');
      const bool left = std::find(left_.begin(), left_.end(), c) != left_.end();
      const std::string cell = r == 0 ? palette.dim(rows_[r][c]) : rows_[r][c];
      line += "  " + (left ? cell + padding : padding + cell);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace headway
