#include "headway/parallel/cuda_devices.h"

#include <gtest/gtest.h>

#include "headway/base/error.h"
#include "headway/parallel/parallel_state.h"
#include "support/expect_error.h"

namespace headway {
namespace {

using test::error_of;
using test::HasAll;

LaunchEnvironment local(int rank, int ranks) {
  LaunchEnvironment launch;
  launch.rank = {rank};
  launch.world_size = launch.local_world_size = ranks;
  launch.local_rank = rank;
  return launch;
}

// Fault case C11: two processes where eight devices are visible.
TEST(CudaDevices, ARankUsesTheDeviceOfItsLocalRank) {
  EXPECT_EQ(choose_cuda_device(local(0, 2), 8, false), 0);
  EXPECT_EQ(choose_cuda_device(local(1, 2), 8, false), 1);
}

// Fault case C13: ranks that see one GPU each use index 0.
TEST(CudaDevices, RanksThatSeeOneGpuEachUseIndexZero) {
  std::vector<CudaDeviceClaim> claims;
  for (int rank : {0, 1}) {
    EXPECT_EQ(choose_cuda_device(local(rank, 2), 1, false), 0);
    claims.push_back({{rank}, "node", rank == 0 ? "aaaa" : "bbbb", 2, 1});
  }
  EXPECT_NO_THROW(check_cuda_device_claims(claims));
  claims[1].uuid = "aaaa";
  claims[1].host = "other";
  EXPECT_NO_THROW(check_cuda_device_claims(claims));
}

// Fault case C13: two local ranks on one visible GPU.
TEST(CudaDevices, TwoRanksOnOneGpuAreAnErrorNamingBothNumbers) {
  const std::vector<CudaDeviceClaim> claims{{{0}, "node", "aaaa", 2, 1}, {{1}, "node", "aaaa", 2, 1}};
  EXPECT_THAT(error_of<LaunchError>([&] { check_cuda_device_claims(claims); }),
              HasAll("ranks 0 and 1", "2 local ranks", "1 visible GPU", "NCCL_MULTI_RANK_GPU_ENABLE=1"));
}

TEST(CudaDevices, MoreRanksThanGpus) {
  EXPECT_THAT(error_of<LaunchError>([] { choose_cuda_device(local(2, 3), 2, false); }),
              HasAll("3 local ranks", "2 visible GPUs", "NCCL_MULTI_RANK_GPU_ENABLE=1"));
  EXPECT_EQ(choose_cuda_device(local(2, 3), 2, true), 0);
  EXPECT_EQ(choose_cuda_device(local(1, 3), 2, true), 1);
}

TEST(CudaDevices, NoGpuIsAnErrorThatNamesTheVariable) {
  EXPECT_THAT(error_of<LaunchError>([] { choose_cuda_device(local(1, 2), 0, true); }),
              HasAll("rank 1", "no GPU", "CUDA_VISIBLE_DEVICES"));
}

TEST(CudaDevices, AskingForCudaWithoutAGpuFailsBeforeAnythingIsStarted) {
  if (visible_cuda_devices() > 0) GTEST_SKIP() << "there is a GPU";
  DistributedOptions options;
  options.device = Device::cuda;
  EXPECT_THAT(error_of<LaunchError>([&] { ParallelState::create({}, 1, 1, options); }),
              HasAll("device cuda", "no GPU"));
}

TEST(CudaDevices, TheBackendMustServeTheDevice) {
  DistributedOptions options;
  options.backend = "nccl";
  EXPECT_THAT(error_of<ConfigError>([&] { ParallelState::create({}, 1, 1, options); }), HasAll("nccl", "cpu"));
  options.backend = "mpi";
  EXPECT_THAT(error_of<ConfigError>([&] { ParallelState::create({}, 1, 1, options); }), HasAll("mpi", "gloo", "nccl"));
  options = {};
  options.device = Device::cuda;
  options.backend = "gloo";
  EXPECT_THAT(error_of<ConfigError>([&] { ParallelState::create({}, 1, 1, options); }), HasAll("gloo", "cuda"));
}

}  // namespace
}  // namespace headway
