#pragma once

#include <functional>
#include <optional>
#include <string>

#include "headway/parallel/ranks.h"

namespace headway {

/// Where this process stands in its job, and who said so.
struct LaunchEnvironment {
  GlobalRank rank;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string source = "single";  ///< "headway", "torchrun", "env", "openmpi", "pmi", "slurm" or "single"
  std::string job_id;             ///< unique to the job on this host, where the launcher gives one
  std::string master_addr;        ///< rendezvous host; empty: one host, by a file or the launcher's own store
  std::optional<int> master_port;
  bool agent_serves_store = false;  ///< torchrun's agent already listens at master_addr:master_port

  bool single_host() const { return local_world_size == world_size; }
};

/// Looks a variable up: std::getenv in production, a map in tests.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> process_environment(const std::string& name);

/// Finds rank and world size from Headway's own launcher, torchrun, RANK/WORLD_SIZE, Open MPI, PMI or Slurm.
/// Throws LaunchError when a source is partial, out of range or in conflict with another one.
LaunchEnvironment resolve_launch_environment(const EnvironmentLookup& lookup = process_environment);

}  // namespace headway
