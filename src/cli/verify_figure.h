#pragma once

#include <optional>
#include <string>
#include <vector>

namespace headway {

/// One line of the figure.
struct DifferenceBar {
  std::string name;
  std::optional<double> value;  ///< absent: there is none, as the layout failed
  double bound = 1;
  std::string note;
};

/// Bars of `value / bound` on a logarithmic scale, in plain ASCII: what a bar leaves to the mark "|" is the margin,
/// what passes it is too much.
std::string difference_figure(const std::vector<DifferenceBar>& bars);

}  // namespace headway
