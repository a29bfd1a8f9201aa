#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "distributed/support/parallel_test.h"
#include "headway/base/error.h"
#include "support/expect_error.h"

namespace headway::testing {
namespace {

using test::HasAll;

int64_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return std::distance(begin(entries), end(entries));
}

struct Held {
  int64_t threads = entries_of("/proc/self/task");
  int64_t descriptors = entries_of("/proc/self/fd");
};

/// Makes groups, uses each, and destroys them.
void run_cycle(int attn_tp) {
  const auto state = ParallelState::create(launch(), world_size(), attn_tp, options());
  for (const GroupCoordinator* group : {&state->world(), &state->tp(), &state->lm_head_tp(), &state->attn_dp()}) {
    const at::Tensor sum = group->all_reduce(at::full({3}, 2.0).to(state->device()));
    EXPECT_EQ(sum[1].item<double>(), 2.0 * group->size());
  }
}

// Fault case C04.
TEST(Lifetime, TwentyCyclesLeaveNothingBehind) {
  const int attn_tp = world_size() % 2 == 0 ? world_size() / 2 : 1;
  for (int i = 0; i < 2; ++i) run_cycle(attn_tp);
  const Held before;
  for (int i = 2; i < 20; ++i) run_cycle(attn_tp);
  const Held after;
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_EQ(after.descriptors, before.descriptors);
}

TEST(Lifetime, EqualGroupsShareTheirConnections) {
  const auto threads = [](int tp, int attn_tp) {
    const int64_t before = Held().threads;
    const auto state = ParallelState::create(launch(), tp, attn_tp, options());
    return Held().threads - before;
  };
  if (world_size() == 1) GTEST_SKIP() << "a single rank has no connections";
  // In the first, only the world has more than one member; in the second world, TP and attention are the same ranks.
  EXPECT_EQ(threads(1, 1), threads(world_size(), world_size()));
}

TEST(Lifetime, DifferentSizesAreNamedOnEveryRank) {
  if (world_size() == 1) GTEST_SKIP() << "a single rank agrees with itself";
  const int last = world_size() - 1;
  const int tp = global_rank().value == last ? 1 : world_size();
  EXPECT_THAT(test::error_of<LaunchError>([&] { ParallelState::create(launch(), tp, 1, options()); }),
              HasAll("tp is " + std::to_string(world_size()) + " on rank", "1 on rank " + std::to_string(last)));
}

TEST(Lifetime, DifferentSettingsAreNamedOnEveryRank) {
  if (world_size() == 1) GTEST_SKIP() << "a single rank agrees with itself";
  const std::string dtype = global_rank().value == 1 ? "bf16" : "fp32";
  const std::string error = test::error_of<LaunchError>(
      [&] { ParallelState::create(launch(), world_size(), 1, options(), "model=one\ndtype=" + dtype); });
  EXPECT_THAT(error, HasAll("dtype is fp32 on rank", "bf16 on rank 1"));
  EXPECT_THAT(error, ::testing::Not(::testing::HasSubstr("model")));
  EXPECT_NO_THROW(ParallelState::create(launch(), world_size(), 1, options(), "model=one\ndtype=bf16"));
}

}  // namespace
}  // namespace headway::testing
