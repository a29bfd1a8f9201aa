#include "kernels/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <numeric>
#include <stdexcept>

#include "headway/base/error.h"
#include "kernels/cores.h"

namespace headway::kernels {
namespace {

using testing::ElementsAre;

void expect_every_part_once(ThreadPool& pool, int64_t parts) {
  std::vector<std::atomic<int>> calls(parts);
  pool.run(parts, [&](int64_t part) { calls[part].fetch_add(1); });
  for (int64_t part = 0; part < parts; ++part) EXPECT_EQ(calls[part].load(), 1) << "part " << part << " of " << parts;
}

TEST(ThreadPool, CallsEveryPartOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool({.threads = threads});
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t parts : {0, 1, 2, 3, 7, 500}) expect_every_part_once(pool, parts);
    for (int repetition = 0; repetition < 200; ++repetition) expect_every_part_once(pool, 4);
  }
}

TEST(ThreadPool, WakesWorkersThatFellAsleep) {
  ThreadPool pool({.threads = 3});
  for (int repetition = 0; repetition < 5; ++repetition) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    expect_every_part_once(pool, 6);
  }
}

TEST(ThreadPool, SharesTheWork) {
  ThreadPool pool({.threads = 2});
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  pool.run(2, [&](int64_t) {
    inside.fetch_add(1);
    while (!met && std::chrono::steady_clock::now() < limit) {
      if (inside == 2) met = true;
      std::this_thread::yield();
    }
  });
  EXPECT_TRUE(met) << "two parts never ran at the same time";
}

TEST(ThreadPool, RethrowsAndGoesOn) {
  ThreadPool pool({.threads = 2});
  for (int64_t bad : {0, 3, 9}) {
    EXPECT_THROW(pool.run(10,
                          [&](int64_t part) {
                            if (part == bad) throw std::runtime_error("part");
                          }),
                 std::runtime_error);
    expect_every_part_once(pool, 10);
  }
}

TEST(ThreadPool, RegionsInsideRegions) {
  ThreadPool pool({.threads = 3});
  std::atomic<int> calls{0};
  pool.run(4, [&](int64_t) { pool.run(5, [&](int64_t) { calls.fetch_add(1); }); });
  EXPECT_EQ(calls.load(), 20);
}

TEST(ThreadPool, SeveralCallers) {
  ThreadPool pool({.threads = 2});
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 300; ++i) pool.run(3, [&](int64_t part) { total.fetch_add(part + 1); });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 3 * 300 * 6);
}

TEST(Threads, CoresOfARank) {
  const std::vector<int> cores = {0, 2, 3, 5, 8};
  EXPECT_THAT(cores_of_rank(cores, 0, 1), ElementsAre(0, 2, 3, 5, 8));
  EXPECT_THAT(cores_of_rank(cores, 0, 2), ElementsAre(0, 2));
  EXPECT_THAT(cores_of_rank(cores, 1, 2), ElementsAre(3, 5, 8));
  EXPECT_THAT(cores_of_rank(cores, 2, 3), ElementsAre(5, 8));
  EXPECT_TRUE(cores_of_rank(cores, 0, 6).empty());
}

TEST(Threads, CountFromTheEnvironment) {
  const char* openmp = std::getenv("OMP_NUM_THREADS");
  const std::string before = openmp == nullptr ? "" : openmp;
  unsetenv("HEADWAY_NUM_THREADS");
  setenv("OMP_NUM_THREADS", "4,2", 1);
  EXPECT_EQ(threads_from_environment(), 4);
  setenv("HEADWAY_NUM_THREADS", "3", 1);
  EXPECT_EQ(threads_from_environment(), 3);
  setenv("HEADWAY_NUM_THREADS", "many", 1);
  EXPECT_THROW(threads_from_environment(), ConfigError);
  unsetenv("HEADWAY_NUM_THREADS");
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(threads_from_environment(), 0);
  if (openmp != nullptr) setenv("OMP_NUM_THREADS", before.c_str(), 1);
}

}  // namespace
}  // namespace headway::kernels
