#include "headway/kernels/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "headway/base/error.h"
#include "kernels/thread_pool.h"

namespace headway::kernels {
namespace {

TEST(ParallelFor, CoversTheRangeInUnits) {
  set_num_threads(3);
  for (int64_t count : {1, 4, 5, 37, 1001}) {
    std::vector<std::atomic<int>> calls(count);
    parallel_for(count, 2, 4, [&](Range range) {
      EXPECT_EQ(range.begin % 4, 0);
      for (int64_t i = range.begin; i < range.end; ++i) calls[i].fetch_add(1);
    });
    for (const auto& call : calls) EXPECT_EQ(call.load(), 1);
  }
  set_num_threads(1);
}

TEST(Threads, AForkedChildGetsAPoolOfItsOwn) {
  set_num_threads(2);
  std::atomic<int> first{0};
  thread_pool().run(4, [&](int64_t) { first.fetch_add(1); });
  EXPECT_EQ(first, 4);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    std::atomic<int> calls{0};
    thread_pool().run(4, [&](int64_t) { calls.fetch_add(1); });
    _exit(calls == 4 && thread_pool().threads() == 2 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  set_num_threads(1);
}

TEST(Threads, RefusesWhatCannotBe) {
  EXPECT_THROW(set_num_threads(0), ArgumentError);
  EXPECT_THROW(set_local_ranks(2, 2), ArgumentError);
  EXPECT_THROW(set_local_ranks(-1, 2), ArgumentError);
}

}  // namespace
}  // namespace headway::kernels
