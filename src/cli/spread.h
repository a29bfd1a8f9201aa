#pragma once

#include <algorithm>
#include <vector>

namespace headway {

/// Repeated measurements in three figures.
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};

/// Of at least one value; of an even number the median is the mean of the middle two.
inline Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

}  // namespace headway
