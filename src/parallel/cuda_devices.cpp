#include "headway/parallel/cuda_devices.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>

#include "headway/base/error.h"

namespace headway {
namespace {

constexpr char kRemedy[] = "start fewer ranks, show more GPUs, or set NCCL_MULTI_RANK_GPU_ENABLE=1";

/// The few driver calls that finding devices needs. libcuda.so.1 comes with the driver, not with the toolkit.
class Driver {
 public:
  Driver() {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(library, "cuInit"));
    const auto get_count = reinterpret_cast<int (*)(int*)>(::dlsym(library, "cuDeviceGetCount"));
    get_device_ = reinterpret_cast<int (*)(int*, int)>(::dlsym(library, "cuDeviceGet"));
    get_uuid_ = reinterpret_cast<int (*)(unsigned char*, int)>(::dlsym(library, "cuDeviceGetUuid_v2"));
    if (!init || !get_count || !get_device_ || !get_uuid_) return;
    if (init(0) != 0 || get_count(&count_) != 0) count_ = 0;
  }

  int count() const { return count_; }

  std::string uuid(int index) const {
    unsigned char bytes[16];
    int device = 0;
    if (index < 0 || index >= count_ || get_device_(&device, index) != 0 || get_uuid_(bytes, device) != 0) {
      throw LaunchError(fmt::format("GPU {} of {} visible ones has no UUID", index, count_));
    }
    std::string text;
    for (unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
    return text;
  }

 private:
  int count_ = 0;
  int (*get_device_)(int*, int) = nullptr;
  int (*get_uuid_)(unsigned char*, int) = nullptr;
};

const Driver& driver() {
  static const Driver instance;
  return instance;
}

}  // namespace

int visible_cuda_devices() {
  return driver().count();
}

std::string cuda_device_uuid(int index) {
  return driver().uuid(index);
}

int choose_cuda_device(const LaunchEnvironment& launch, int visible_devices, bool several_ranks_per_gpu) {
  if (visible_devices == 0) {
    throw LaunchError(fmt::format("device cuda: rank {} sees no GPU (CUDA_VISIBLE_DEVICES={})", launch.rank.value,
                                  process_environment("CUDA_VISIBLE_DEVICES").value_or("")));
  }
  if (visible_devices == 1) return 0;
  if (launch.local_rank < visible_devices) return launch.local_rank;
  if (several_ranks_per_gpu) return launch.local_rank % visible_devices;
  throw LaunchError(fmt::format("device cuda: {} local ranks but {} visible GPUs; {}", launch.local_world_size,
                                visible_devices, kRemedy));
}

void check_cuda_device_claims(const std::vector<CudaDeviceClaim>& claims) {
  std::map<std::pair<std::string, std::string>, GlobalRank> owners;
  for (const CudaDeviceClaim& claim : claims) {
    const auto [owner, first] = owners.emplace(std::pair(claim.host, claim.uuid), claim.rank);
    if (first) continue;
    throw LaunchError(fmt::format(
        "device cuda: ranks {} and {} would share a GPU of host {}, which has {} local ranks and {} visible GPU{}; {}",
        owner->second.value, claim.rank.value, claim.host, claim.local_ranks, claim.visible_devices,
        claim.visible_devices == 1 ? "" : "s", kRemedy));
  }
}

}  // namespace headway
