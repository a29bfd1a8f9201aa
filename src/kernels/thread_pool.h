#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <type_traits>
#include <vector>

#include "headway/base/range.h"

namespace headway::kernels {

struct ThreadPoolOptions {
  int threads = 1;              ///< the caller included
  std::vector<int> cores = {};  ///< one per thread, the caller's first: where to pin the others; empty: share the cores
};

/// Threads that outlive the regions they work on, for regions of microseconds. One caller at a time shares its region
/// with them; a second caller, or one inside a region, does its region alone. Parts are claimed, not assigned: a
/// caller whose workers are late does their parts itself.
class ThreadPool {
 public:
  explicit ThreadPool(ThreadPoolOptions options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(part) for each part in [0, parts), parts < 65536, and returns when all are done. Rethrows one of the
  /// exceptions that the calls threw.
  template <typename Body>
  void run(int64_t parts, const Body& body) {
    run_region(
        parts, [](const void* context, int64_t part) { (*static_cast<const Body*>(context))(part); }, &body);
  }

 private:
  using Call = void (*)(const void* context, int64_t part);

  void run_region(int64_t parts, Call call, const void* context);
  bool run_next_part();
  void work(int core);
  void wait_for_region_after(uint32_t seen);

  const bool own_cores_;
  std::vector<std::thread> workers_;
  std::atomic_flag has_caller_ = ATOMIC_FLAG_INIT;

  // Written before a region is announced; not rewritten while a part of it is claimed and not done.
  Call call_ = nullptr;
  const void* context_ = nullptr;
  std::exception_ptr failure_;
  std::atomic_flag has_failure_ = ATOMIC_FLAG_INIT;

  alignas(64) std::atomic<uint64_t> claims_{0};  ///< region << 32 | parts << 16 | next part
  std::atomic<uint32_t> region_{0};              ///< workers wait for it to change
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<int64_t> parts_done_{0};
};

/// The pool of this process, as threads.h set it up.
ThreadPool& thread_pool();

/// Calls body(Range) over [0, count): one range per thread, but of at least `grain` each, with borders at multiples of
/// `unit`.
template <typename Body>
void parallel_for(int64_t count, int64_t grain, int64_t unit, const Body& body) {
  if (count <= 0) return;
  const int64_t units = (count + unit - 1) / unit;
  if (count < 2 * grain || units < 2) return body(Range{0, count});
  ThreadPool& pool = thread_pool();
  const int64_t parts = std::min({static_cast<int64_t>(pool.threads()), count / grain, units});
  if (parts == 1) return body(Range{0, count});
  pool.run(parts, [&](int64_t part) {
    body(Range{units * part / parts * unit, std::min(count, units * (part + 1) / parts * unit)});
  });
}

}  // namespace headway::kernels
