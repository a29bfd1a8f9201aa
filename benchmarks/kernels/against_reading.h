#pragma once

#include <benchmark/benchmark.h>

#include <functional>

namespace headway::benchmarks {

/// Times `work`, which reads `bytes`, in turns with a pass that does nothing but read, so that both see the same
/// machine. Reports medians: GB/s of the work, read_GB/s, and the ratio of the two.
void run_against_reading(benchmark::State& state, double bytes, const std::function<void()>& work);

}  // namespace headway::benchmarks
