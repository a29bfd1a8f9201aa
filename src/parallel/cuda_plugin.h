#pragma once

#include <memory>

#include "parallel/communicator_factory.h"

namespace headway {

/// What needs torch's CUDA libraries. It lives in a library of its own, so that runs without CUDA do not load them.
class CudaPlugin {
 public:
  virtual ~CudaPlugin() = default;
  /// Makes `index` the device of this process.
  virtual void use_device(int index) = 0;
  virtual std::shared_ptr<Communicator> make_nccl_communicator(const CommunicatorRequest& request) = 0;
};

/// The name and type of the function that the library exports.
inline constexpr char kCudaPluginEntry[] = "headway_cuda_plugin";
using CudaPluginEntry = CudaPlugin* (*)();

/// Loads libheadway_cuda.so from the folder of libheadway.so. Throws ConfigError naming the file and the reason if it
/// cannot be loaded, as when Headway was built on a torch without CUDA.
CudaPlugin& cuda_plugin();

}  // namespace headway
