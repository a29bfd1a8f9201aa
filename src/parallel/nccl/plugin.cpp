#include <c10/cuda/CUDAFunctions.h>

#include <cstdlib>

#include "parallel/cuda_plugin.h"
#include "parallel/nccl/nccl_communicator.h"

namespace headway {
namespace {

/// By default torch ends the process when a collective fails. Let it end the collective instead, so that the error
/// reaches the caller; whoever sets these variables decides.
void keep_process_alive_on_failure() {
  constexpr char kAbortCommunicatorOnly[] = "2";
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", kAbortCommunicatorOnly, /*overwrite=*/0);
  ::setenv("TORCH_NCCL_ENABLE_MONITORING", "0", /*overwrite=*/0);
}

class TorchCudaPlugin : public CudaPlugin {
 public:
  TorchCudaPlugin() { keep_process_alive_on_failure(); }

  void use_device(int index) override { c10::cuda::set_device(static_cast<c10::DeviceIndex>(index)); }

  std::shared_ptr<Communicator> make_nccl_communicator(const CommunicatorRequest& request) override {
    return headway::make_nccl_communicator(request);
  }
};

}  // namespace
}  // namespace headway

extern "C" headway::CudaPlugin* headway_cuda_plugin() {
  static headway::TorchCudaPlugin plugin;
  return &plugin;
}
