#include "cli/verify_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace headway {
namespace {

// The scale: four cells a decade, from a millionth of the bound to a thousand times it.
constexpr int kCellsPerDecade = 4;
constexpr int kDecadesBelow = 6;
constexpr int kDecadesAbove = 3;
constexpr int kBoundCell = kCellsPerDecade * kDecadesBelow;
constexpr int kCells = kCellsPerDecade * (kDecadesBelow + kDecadesAbove);

/// Cells that a value fills; NaN and infinity fill all, 0 none.
int filled_cells(double share_of_bound) {
  if (!std::isfinite(share_of_bound)) return kCells;
  if (share_of_bound <= 0) return 0;
  const double cells = kBoundCell + kCellsPerDecade * std::log10(share_of_bound);
  const bool within = share_of_bound <= 1;
  const int least = within ? 0 : kBoundCell + 1;  // on the right side of the mark, however close
  const int most = within ? kBoundCell : kCells;
  return std::clamp(static_cast<int>(std::lround(cells)), least, most);
}

std::string bar_cells(const DifferenceBar& bar) {
  const int filled = bar.value ? filled_cells(*bar.value / bar.bound) : 0;
  std::string cells(filled, '#');
  cells.resize(kCells, ' ');
  cells.insert(kBoundCell, "|");
  return cells;
}

std::string value_text(const DifferenceBar& bar) {
  return bar.value ? fmt::format("{:.1e}", *bar.value) : "-";
}

/// "1e-6 ... bound ... 1e+3" over the cells.
std::string scale_line(size_t indent) {
  std::string line(indent, ' ');
  for (int decade = -kDecadesBelow; decade <= kDecadesAbove; decade += kDecadesAbove) {
    const size_t column = indent + kCellsPerDecade * (decade + kDecadesBelow);
    line.resize(std::max(column, line.size()), ' ');
    line += decade == 0 ? "bound" : fmt::format("1e{:+}", decade);
  }
  return line + "\n";
}

}  // namespace

std::string difference_figure(const std::vector<DifferenceBar>& bars) {
  size_t width = 0;
  for (const DifferenceBar& bar : bars) width = std::max(width, bar.name.size());
  std::string text = fmt::format("Largest difference as a share of its bound\n{}", scale_line(width + 4));
  for (const DifferenceBar& bar : bars) {
    text += fmt::format("  {:<{}}  {}  {:>8}  {}\n", bar.name, width, bar_cells(bar), value_text(bar), bar.note);
  }
  return text;
}

}  // namespace headway
