#include "engine/core_share.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace headway
