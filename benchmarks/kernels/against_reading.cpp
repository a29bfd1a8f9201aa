#include "kernels/against_reading.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "kernels/read_bandwidth.h"

namespace headway::benchmarks {
namespace {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

void run_against_reading(benchmark::State& state, double bytes, const std::function<void()>& work) {
  static kernels::ReadBandwidth reading(int64_t{1} << 30);
  std::vector<double> read_rates, rates, ratios;
  work();
  for (auto _ : state) {
    read_rates.push_back(reading.measure());
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(elapsed.count());
    rates.push_back(bytes / elapsed.count());
    ratios.push_back(rates.back() / read_rates.back());
  }
  state.counters["GB/s"] = median(rates) * 1e-9;
  state.counters["read_GB/s"] = median(read_rates) * 1e-9;
  state.counters["ratio"] = median(ratios);
  state.counters["us"] = bytes / median(rates) * 1e6;
}

}  // namespace headway::benchmarks
