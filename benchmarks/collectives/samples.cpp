#include "collectives/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace headway::benchmarks {
namespace {

const Samples* over_gloo(const std::vector<Samples>& all, const Samples& one) {
  for (const Samples& other : all) {
    const bool same = other.operation == one.operation && other.dtype == one.dtype && other.bytes == one.bytes;
    if (same && other.transport == "gloo" && one.transport != "gloo") return &other;
  }
  return nullptr;
}

}  // namespace

double Samples::quantile(double share) const {
  std::vector<double> sorted = microseconds;
  std::sort(sorted.begin(), sorted.end());
  return sorted.at(std::min(sorted.size() - 1, static_cast<size_t>(share * static_cast<double>(sorted.size()))));
}

std::string as_table(const std::vector<Samples>& all) {
  std::string table = fmt::format("{:<22} {:<9} {:>8} {:<5} {:>9} {:>9} {:>9}  {}\n", "operation", "dtype", "bytes",
                                  "over", "min us", "p50 us", "p99 us", "p50 of Gloo / this");
  for (const Samples& one : all) {
    const Samples* gloo = over_gloo(all, one);
    table += fmt::format("{:<22} {:<9} {:>8} {:<5} {:>9.2f} {:>9.2f} {:>9.2f}  {}\n", one.operation, one.dtype,
                         one.bytes, one.transport, one.quantile(0), one.quantile(0.5), one.quantile(0.99),
                         gloo ? fmt::format("{:.1f}", gloo->quantile(0.5) / one.quantile(0.5)) : "");
  }
  return table;
}

std::string as_json(const std::vector<Samples>& all, int ranks, bool pinned) {
  nlohmann::json results = nlohmann::json::array();
  for (const Samples& one : all) {
    results.push_back({{"operation", one.operation},
                       {"dtype", one.dtype},
                       {"bytes", one.bytes},
                       {"transport", one.transport},
                       {"calls", one.microseconds.size()},
                       {"min_us", one.quantile(0)},
                       {"p50_us", one.quantile(0.5)},
                       {"p99_us", one.quantile(0.99)}});
  }
  return nlohmann::json{{"ranks", ranks}, {"pinned", pinned}, {"results", results}}.dump(2);
}

}  // namespace headway::benchmarks
