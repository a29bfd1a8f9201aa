#include "headway/kernels/threads.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <pthread.h>

#include <memory>
#include <mutex>

#include "headway/base/error.h"
#include "kernels/cores.h"
#include "kernels/thread_pool.h"

namespace headway::kernels {
namespace {

/// The choices made so far and the pool that follows from them.
class Threads {
 public:
  static Threads& instance() {
    static Threads* threads = new Threads;  // never destroyed: workers may outlive static destructors
    return *threads;
  }

  ThreadPool& pool() {
    ThreadPool* pool = pool_.load(std::memory_order_acquire);
    return pool != nullptr ? *pool : create();
  }

  void set_ranks(int local_rank, int local_ranks) {
    const std::lock_guard lock(mutex_);
    local_rank_ = local_rank;
    local_ranks_ = local_ranks;
    discard();
  }

  void set_threads(int threads) {
    const std::lock_guard lock(mutex_);
    chosen_threads_ = threads;
    discard();
  }

  int threads() {
    const std::lock_guard lock(mutex_);
    return options().threads;
  }

  void pin_caller() {
    const std::lock_guard lock(mutex_);
    const ThreadPoolOptions chosen = options();
    if (!chosen.cores.empty()) pin_to_core(chosen.cores.front());
  }

 private:
  // A forked child has none of the workers: it starts a pool of its own.
  Threads() {
    pthread_atfork(nullptr, nullptr, [] { instance().pool_.store(nullptr); });
  }

  ThreadPoolOptions options() const {
    const std::vector<int> own = cores_of_rank(cores_, local_rank_, local_ranks_);
    int threads = chosen_threads_ > 0 ? chosen_threads_ : threads_from_environment();
    if (threads == 0) threads = std::max<int>(1, static_cast<int>(own.size()));
    const bool enough = threads <= static_cast<int>(own.size());
    return {.threads = threads, .cores = enough ? own : std::vector<int>{}};
  }

  ThreadPool& create() {
    const std::lock_guard lock(mutex_);
    if (pool_.load() == nullptr) {
      at::set_num_threads(1);  // it works inside parts of our regions, on the thread that calls it
      pool_.store(new ThreadPool(options()));
    }
    return *pool_.load();
  }

  void discard() { delete pool_.exchange(nullptr); }

  std::mutex mutex_;
  std::atomic<ThreadPool*> pool_{nullptr};
  const std::vector<int> cores_ = allowed_cores();  // before any thread of ours is pinned
  int local_rank_ = 0;
  int local_ranks_ = 1;
  int chosen_threads_ = 0;
};

}  // namespace

void set_local_ranks(int local_rank, int local_ranks) {
  if (local_rank < 0 || local_rank >= local_ranks) {
    throw ArgumentError(fmt::format("set_local_ranks: rank {} of {} on this host", local_rank, local_ranks));
  }
  Threads::instance().set_ranks(local_rank, local_ranks);
}

void set_num_threads(int threads) {
  if (threads < 1) throw ArgumentError(fmt::format("set_num_threads: {} threads", threads));
  Threads::instance().set_threads(threads);
}

int num_threads() {
  return Threads::instance().threads();
}

void pin_calling_thread() {
  Threads::instance().pin_caller();
}

ThreadPool& thread_pool() {
  return Threads::instance().pool();
}

}  // namespace headway::kernels
