#include "kernels/thread_pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>

#include "kernels/cores.h"

namespace headway::kernels {
namespace {

// How long a worker waits awake for the next region. Between the operators of a step less than this passes; between
// requests, more.
constexpr auto spin_on_own_core = std::chrono::microseconds(1000);
constexpr auto spin_on_shared_core = std::chrono::microseconds(50);

void sleep_while(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits awake until `done` or, if there is one, the limit; tells whether it is done.
template <typename Done>
bool spin_until(const Done& done, bool own_core, std::chrono::microseconds limit) {
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      relax();
    }
    if (!own_core) sched_yield();
    if (limit.count() > 0 && std::chrono::steady_clock::now() - start > limit) return done();
  }
}

}  // namespace

ThreadPool::ThreadPool(ThreadPoolOptions options) : own_cores_(!options.cores.empty()) {
  for (int thread = 1; thread < options.threads; ++thread) {
    const int core = own_cores_ ? options.cores[thread] : -1;
    workers_.emplace_back([this, core] { work(core); });
  }
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  region_.fetch_add(1);
  wake_all(region_);
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_region(int64_t parts, Call call, const void* context) {
  if (parts <= 0) return;
  if (workers_.empty() || parts == 1 || has_caller_.test_and_set(std::memory_order_acquire)) {
    for (int64_t part = 0; part < parts; ++part) call(context, part);
    return;
  }
  call_ = call;
  context_ = context;
  parts_done_.store(0, std::memory_order_relaxed);
  const uint32_t region = region_.load(std::memory_order_relaxed) + 1;
  claims_.store(uint64_t{region} << 32 | static_cast<uint64_t>(parts) << 16, std::memory_order_release);
  region_.store(region);
  if (sleepers_.load() > 0) wake_all(region_);
  while (run_next_part()) {
  }
  spin_until([&] { return parts_done_.load(std::memory_order_acquire) == parts; }, own_cores_, {});
  std::exception_ptr failure;
  if (has_failure_.test(std::memory_order_relaxed)) {
    std::swap(failure, failure_);
    has_failure_.clear(std::memory_order_relaxed);
  }
  has_caller_.clear(std::memory_order_release);
  if (failure) std::rethrow_exception(failure);
}

bool ThreadPool::run_next_part() {
  uint64_t claim = claims_.load(std::memory_order_acquire);
  do {
    if ((claim & 0xffff) >= (claim >> 16 & 0xffff)) return false;
  } while (!claims_.compare_exchange_weak(claim, claim + 1, std::memory_order_acq_rel, std::memory_order_acquire));
  try {
    call_(context_, static_cast<int64_t>(claim & 0xffff));
  } catch (...) {
    if (!has_failure_.test_and_set()) failure_ = std::current_exception();
  }
  parts_done_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

void ThreadPool::work(int core) {
  if (core >= 0) pin_to_core(core);
  uint32_t seen = 0;
  while (!stop_) {
    wait_for_region_after(seen);
    seen = region_.load();
    while (run_next_part()) {
    }
  }
}

void ThreadPool::wait_for_region_after(uint32_t seen) {
  const auto changed = [&] { return region_.load(std::memory_order_acquire) != seen; };
  if (spin_until(changed, own_cores_, own_cores_ ? spin_on_own_core : spin_on_shared_core)) return;
  sleepers_.fetch_add(1);
  while (!changed()) sleep_while(region_, seen);
  sleepers_.fetch_sub(1);
}

}  // namespace headway::kernels
