#include "kernels/read_bandwidth.h"

#include <atomic>
#include <chrono>

#include "headway/weights/weight_arena.h"
#include "kernels/thread_pool.h"

namespace headway::kernels {
namespace {

constexpr int64_t step = 512;  // bytes: eight vectors of 64

/// Sums the buffer with one accumulator for each of eight vectors, so that nothing but the loads counts.
#if defined(__x86_64__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
uint64_t
sum_of(const uint64_t* data, int64_t count) {
  using Vector = uint64_t __attribute__((vector_size(64)));
  const auto* vectors = reinterpret_cast<const Vector*>(data);
  Vector sums[8] = {};
  for (int64_t i = 0; i < count / 8; i += 8) {
#pragma GCC unroll 8
    for (int part = 0; part < 8; ++part) sums[part] += vectors[i + part];
  }
  uint64_t total = 0;
  for (const Vector& sum : sums) {
    for (int lane = 0; lane < 8; ++lane) total += sum[lane];
  }
  return total;
}

}  // namespace

ReadBandwidth::ReadBandwidth(int64_t bytes) {
  const std::vector<int64_t> shape = {bytes / step * step / static_cast<int64_t>(sizeof(int64_t))};
  buffer_ = WeightArena::create(WeightArena::footprint(shape, at::kLong))->allocate(shape, at::kLong);
  buffer_.fill_(1);
}

double ReadBandwidth::measure() {
  const auto* data = reinterpret_cast<const uint64_t*>(buffer_.const_data_ptr<int64_t>());
  std::atomic<uint64_t> total{0};
  const auto start = std::chrono::steady_clock::now();
  parallel_for(buffer_.numel(), 4096, step / static_cast<int64_t>(sizeof(int64_t)),
               [&](Range part) { total += sum_of(data + part.begin, part.size()); });
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  // The sum is used, or the loop would be left out.
  return total == 0 ? 0.0 : static_cast<double>(buffer_.numel()) * sizeof(int64_t) / elapsed.count();
}

}  // namespace headway::kernels
