#pragma once

#include <memory>

#include "parallel/communicator_factory.h"

namespace headway {

/// Connects the members' current CUDA devices by NCCL. Throws LaunchError with NCCL's reason.
std::shared_ptr<Communicator> make_nccl_communicator(const CommunicatorRequest& request);

}  // namespace headway
