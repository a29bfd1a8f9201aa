#pragma once

#include <string>
#include <vector>

#include "headway/parallel/launch.h"

namespace headway {

/// GPUs that this process sees, asked of the driver without loading torch's CUDA libraries; 0 without a driver.
int visible_cuda_devices();

/// A text that tells a visible GPU from every other one, whatever its index here.
std::string cuda_device_uuid(int index);

/// The device index of this rank: its local rank, or 0 where each process sees one GPU only. With
/// `several_ranks_per_gpu` local ranks go around the visible GPUs. Throws LaunchError naming the number of local ranks
/// and of visible GPUs if there are too few.
int choose_cuda_device(const LaunchEnvironment& launch, int visible_devices, bool several_ranks_per_gpu);

/// The GPU that one rank is about to use.
struct CudaDeviceClaim {
  GlobalRank rank;
  std::string host;
  std::string uuid;
  int local_ranks = 1;
  int visible_devices = 1;
};

/// Throws LaunchError naming ranks, the number of local ranks and of visible GPUs if two ranks claim one GPU.
void check_cuda_device_claims(const std::vector<CudaDeviceClaim>& claims);

}  // namespace headway
