#pragma once

#include <c10/core/Device.h>

#include <string_view>

#include "headway/parallel/launch.h"

namespace headway {

/// The device that `name` means for this rank: "cpu", "cuda", or "auto": cuda where this process sees a CUDA device.
/// Every rank of a host takes the device of its local rank; a rank that sees exactly one takes that. Throws UsageError
/// naming the counts where there are too few.
c10::Device choose_device(std::string_view name, const LaunchEnvironment& launch);

/// The same for a given number of visible CUDA devices.
c10::Device choose_device(std::string_view name, const LaunchEnvironment& launch, int visible_devices);

}  // namespace headway
