#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headway::benchmarks {

/// The times of many calls of one operation over one transport.
struct Samples {
  std::string operation;
  std::string dtype;
  int64_t bytes = 0;
  std::string transport;  ///< "shm" or "gloo"
  std::vector<double> microseconds = {};

  /// The value that the given share of the calls does not exceed.
  double quantile(double share) const;
};

/// A table; where an operation was measured over both transports, with the ratio of their medians.
std::string as_table(const std::vector<Samples>& all);

/// One object with a list of results: min_us, p50_us, p99_us and the number of calls of each.
std::string as_json(const std::vector<Samples>& all, int ranks, bool pinned);

}  // namespace headway::benchmarks
