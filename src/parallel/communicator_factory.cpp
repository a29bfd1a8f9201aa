#include "parallel/communicator_factory.h"

#include <fmt/format.h>

#include "headway/base/error.h"
#include "parallel/cuda_plugin.h"
#include "parallel/gloo_communicator.h"

namespace headway {

void check_backend(const DistributedOptions& options) {
  const std::string& backend = options.backend;
  if (backend != "auto" && backend != "gloo" && backend != "nccl") {
    throw ConfigError(fmt::format("backend '{}' is not one of auto, gloo, nccl", backend));
  }
  const bool cuda = options.device == Device::cuda;
  if ((cuda && backend == "gloo") || (!cuda && backend == "nccl")) {
    throw ConfigError(fmt::format("backend {} does not serve device {}", backend, cuda ? "cuda" : "cpu"));
  }
}

std::shared_ptr<Communicator> make_communicator(const CommunicatorRequest& request) {
  if (request.options.device == Device::cuda) return cuda_plugin().make_nccl_communicator(request);
  return make_gloo_communicator(request);
}

}  // namespace headway
