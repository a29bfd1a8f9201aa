#pragma once

#include <memory>
#include <string>

#include "headway/parallel/communicator.h"
#include "headway/parallel/parallel_state.h"

namespace headway {

class JobStore;

/// What a backend needs to connect the members of one group. Every member asks at the same time.
struct CommunicatorRequest {
  std::string key;  ///< names the group in `store`; no other group of the job has it
  RankList ranks;
  GroupRank rank;  ///< this process in `ranks`
  std::shared_ptr<JobStore> store;
  const LaunchEnvironment& launch;
  const DistributedOptions& options;
};

/// The transport for a group of two or more: the one place where it is chosen.
std::shared_ptr<Communicator> make_communicator(const CommunicatorRequest& request);

/// Throws ConfigError if the options name no backend or one that cannot serve the device, or HEADWAY_COLLECTIVES is
/// neither gloo nor shm.
void check_backend(const DistributedOptions& options);

/// What HEADWAY_COLLECTIVES says about groups on CPUs: "gloo", "shm" (or it is an error) or "" (shared memory where
/// all members are on one host, else Gloo).
std::string chosen_collectives();

}  // namespace headway
