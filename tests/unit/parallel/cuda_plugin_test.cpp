#include "parallel/cuda_plugin.h"

#include <gtest/gtest.h>

#include "headway/base/error.h"
#include "headway/parallel/cuda_devices.h"
#include "support/expect_error.h"

namespace headway {
namespace {

TEST(CudaPlugin, IsFoundBesideTheLibrary) {
  EXPECT_EQ(&cuda_plugin(), &cuda_plugin());
}

TEST(CudaPlugin, NcclWithoutAGpuIsAnError) {
  if (visible_cuda_devices() > 0) GTEST_SKIP() << "there is a GPU";
  const LaunchEnvironment launch;
  const DistributedOptions options;
  const CommunicatorRequest request{"group", {{0}, {1}}, {0}, nullptr, launch, options};
  EXPECT_THAT(test::error_of<LaunchError>([&] { cuda_plugin().make_nccl_communicator(request); }),
              ::testing::HasSubstr("CUDA"));
}

}  // namespace
}  // namespace headway
