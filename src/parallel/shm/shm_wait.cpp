#include "parallel/shm/shm_wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

namespace headway {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

/// Sleeps while the word equals `expected`, at most `limit`. May return early.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, nanoseconds limit) {
  const timespec relative{static_cast<time_t>(limit.count() / 1'000'000'000),
                          static_cast<long>(limit.count() % 1'000'000'000)};
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, expected, &relative, nullptr, 0);
}

/// Counts this thread as a sleeper of a signal while it lives.
class Sleeper {
 public:
  explicit Sleeper(Signal& signal) : signal_(signal) { signal_.sleepers.fetch_add(1, std::memory_order_seq_cst); }
  ~Sleeper() { signal_.sleepers.fetch_sub(1, std::memory_order_seq_cst); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

 private:
  Signal& signal_;
};

}  // namespace

void Signal::wake() {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

SpinPolicy SpinPolicy::for_host(bool oversubscribed) {
  if (oversubscribed) return {.tight = nanoseconds{0}, .yielding = microseconds{100}};
  return {.tight = microseconds{20}, .yielding = microseconds{1000}};
}

void detail::relax() {
  __builtin_ia32_pause();
}
void detail::yield_core() {
  ::sched_yield();
}

bool sleep_until(Signal& signal, const std::function<bool()>& ready, std::optional<SteadyClock::time_point> deadline,
                 const std::function<void()>& watch) {
  // Registering before looking, and raising before looking for sleepers, cannot both miss the other.
  const Sleeper sleeper(signal);
  auto next_watch = SteadyClock::now() + kWatchInterval;
  while (true) {
    const uint32_t seen = signal.value.load(std::memory_order_seq_cst);
    if (ready()) return true;
    const auto now = SteadyClock::now();
    if (deadline && now >= *deadline) return false;
    if (now >= next_watch) {
      watch();
      next_watch = now + kWatchInterval;
    }
    const auto wake_up = deadline ? std::min(*deadline, next_watch) : next_watch;
    futex_wait(signal.value, seen, wake_up - now);
  }
}

}  // namespace headway
