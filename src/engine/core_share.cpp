#include "engine/core_share.h"

#include <sched.h>
#include <unistd.h>

namespace headway {
namespace {

/// Cores that a process may run on, 0 if the system does not say.
int allowed_cores_of(pid_t process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(process, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

}  // namespace

CoreShare core_share(const LaunchEnvironment& launch, int own_cores, int parent_cores) {
  if (own_cores < parent_cores) return {};
  return {launch.local_rank, launch.local_world_size};
}

CoreShare core_share(const LaunchEnvironment& launch) {
  // As it was before the first engine's thread was pinned: a later engine would take the pin for the launcher's.
  static const int own_cores = allowed_cores_of(0);
  return core_share(launch, own_cores, allowed_cores_of(getppid()));
}

}  // namespace headway
