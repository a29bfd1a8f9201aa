#pragma once

#include <memory>

#include "parallel/communicator_factory.h"

namespace headway {

/// Connects the members over TCP: the loopback interface on one host, else the interface that the options or
/// HEADWAY_SOCKET_IFNAME or GLOO_SOCKET_IFNAME name, else the one that leads to MASTER_ADDR.
/// Throws LaunchError naming an interface that does not exist and who asked for it.
std::shared_ptr<Communicator> make_gloo_communicator(const CommunicatorRequest& request);

}  // namespace headway
