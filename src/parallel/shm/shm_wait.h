#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

namespace headway {

using SteadyClock = std::chrono::steady_clock;

/// A word in shared memory on which processes sleep. It starts out valid as zeroed memory.
struct alignas(128) Signal {
  std::atomic<uint32_t> value{0};
  std::atomic<uint32_t> sleepers{0};

  bool has_sleepers() const { return sleepers.load(std::memory_order_seq_cst) != 0; }
  void wake();  ///< makes every sleeper look again
  void raise() {
    value.fetch_add(1, std::memory_order_seq_cst);
    if (has_sleepers()) wake();
  }
};
static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

/// How long to look for a change without sleeping: first in a tight loop, then giving the core to whoever wants it.
struct SpinPolicy {
  std::chrono::nanoseconds tight{0};
  std::chrono::nanoseconds yielding{0};

  /// Short where processes outnumber cores: a peer cannot arrive while this one holds its core.
  static SpinPolicy for_host(bool oversubscribed);
};

namespace detail {
void relax();  ///< the processor's hint for spin loops
void yield_core();
}  // namespace detail

/// Looks until `ready()` or the policy is used up; returns whether it became ready.
template <typename Ready>
bool spin(const SpinPolicy& policy, Ready&& ready) {
  constexpr int kLooksPerClockReading = 64;
  const auto look = [&] {
    for (int i = 0; i < kLooksPerClockReading; ++i) {
      if (ready()) return true;
      detail::relax();
    }
    return false;
  };
  if (look()) return true;  // the usual case reads no clock
  const auto start = SteadyClock::now();
  while (SteadyClock::now() - start < policy.tight) {
    if (look()) return true;
  }
  while (SteadyClock::now() - start < policy.tight + policy.yielding) {
    if (ready()) return true;
    detail::yield_core();
  }
  return ready();
}

/// The longest that a sleeper sleeps before it looks after its peers.
inline constexpr std::chrono::milliseconds kWatchInterval{20};

/// Sleeps on `signal` until `ready()`; false once `deadline` has passed. Whoever makes `ready()` true must raise the
/// signal, or see that it has no sleepers; both sides need sequentially consistent accesses for that. `watch` is called
/// at every interval without success and may throw.
bool sleep_until(Signal& signal, const std::function<bool()>& ready, std::optional<SteadyClock::time_point> deadline,
                 const std::function<void()>& watch);

}  // namespace headway
