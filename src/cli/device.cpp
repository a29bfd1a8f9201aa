#include "cli/device.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <fmt/format.h>

#include "cli/errors.h"

namespace headway {

c10::Device choose_device(std::string_view name, const LaunchEnvironment& launch) {
  const auto& cuda = at::detail::getCUDAHooks();
  return choose_device(name, launch, cuda.hasCUDA() ? cuda.deviceCount() : 0);
}

c10::Device choose_device(std::string_view name, const LaunchEnvironment& launch, int visible_devices) {
  if (name == "cpu" || (name == "auto" && visible_devices == 0)) return c10::kCPU;
  if (visible_devices == 0) throw UsageError("--device is cuda, but this process sees no CUDA device");
  if (visible_devices == 1 && launch.source != "headway") return {c10::kCUDA, 0};
  if (launch.local_rank < visible_devices) {
    return {c10::kCUDA, static_cast<c10::DeviceIndex>(launch.local_rank)};
  }
  throw UsageError(fmt::format("{} local ranks need a CUDA device each, but {} is visible", launch.local_world_size,
                               visible_devices));
}

}  // namespace headway
