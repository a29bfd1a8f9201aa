#include "engine/core_share.h"

#include <gtest/gtest.h>

#include <thread>

#include "kernels/cores.h"

namespace headway {
namespace {

LaunchEnvironment third_of_four() {
  LaunchEnvironment launch;
  launch.local_rank = 2;
  launch.local_world_size = 4;
  return launch;
}

TEST(CoreShare, RanksOfAHostShareItsCores) {
  EXPECT_EQ(core_share(third_of_four(), 16, 16), (CoreShare{2, 4}));
  EXPECT_EQ(core_share(third_of_four(), 16, 0), (CoreShare{2, 4}));
  EXPECT_EQ(core_share({}, 16, 16), (CoreShare{0, 1}));
}

TEST(CoreShare, ARankThatItsLauncherHasBoundKeepsAllThatItHas) {
  EXPECT_EQ(core_share(third_of_four(), 4, 16), (CoreShare{0, 1}));
}

/// A second engine in one process meets a thread that the first one has pinned.
TEST(CoreShare, APinnedThreadDoesNotCountAsBoundByTheLauncher) {
  LaunchEnvironment launch;
  launch.local_rank = 1;
  launch.local_world_size = 2;
  const CoreShare before = core_share(launch);
  CoreShare after;
  std::thread([&] {
    kernels::pin_to_core(kernels::allowed_cores().front());
    after = core_share(launch);
  }).join();
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace headway
