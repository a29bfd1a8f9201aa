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
  std::string store_file;         ///< rendezvous file chosen by Headway's own launcher; empty: derived from job_id
  std::string master_addr;        ///< rendezvous host; empty: one host, by a file or the launcher's own store
  std::optional<int> master_port;
  bool agent_serves_store = false;  ///< torchrun's agent already listens at master_addr:master_port

  bool single_host() const { return local_world_size == world_size; }
};

/// Looks a variable up: std::getenv in production, a map in tests.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> process_environment(const std::string& name);

/// Finds rank and world size. The first source that is set wins:
///   headway   HEADWAY_RANK, HEADWAY_WORLD_SIZE, HEADWAY_STORE: set by Headway's own launcher
///   torchrun  RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE beside TORCHELASTIC_RUN_ID
///   env       RANK, WORLD_SIZE, and LOCAL_RANK, LOCAL_WORLD_SIZE if given; must agree with the launchers below, which
///             say how many ranks are on this host where LOCAL_WORLD_SIZE does not
///   openmpi   OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
///   pmi       PMI_RANK, PMI_SIZE, and MPI_LOCALRANKID, MPI_LOCALNRANKS if given
///   slurm     SLURM_PROCID, SLURM_STEP_NUM_TASKS (SLURM_NTASKS is set in shells that srun did not start)
///   single    none of these, or a PMI or Slurm step of one process
/// Several ranks find each other by MASTER_ADDR and MASTER_PORT, else, on one host, by the launcher's job id;
/// HEADWAY_JOB_ID stands in for the latter. Throws LaunchError naming variables and values when a source is partial,
/// out of range, not a number or in conflict with another one, and when the ranks could not find each other.
LaunchEnvironment resolve_launch_environment(const EnvironmentLookup& lookup = process_environment);

}  // namespace headway
