#pragma once

#include "headway/parallel/launch.h"

namespace headway {

/// Which part of the cores that this process may run on belongs to this rank: part `rank` of `ranks`.
struct CoreShare {
  int rank = 0;
  int ranks = 1;
  friend bool operator==(const CoreShare&, const CoreShare&) = default;
};

/// All of them where the launcher has bound this rank, so that it may use fewer cores (`own_cores`) than the launcher
/// itself (`parent_cores`); else those of the host are shared by its ranks.
CoreShare core_share(const LaunchEnvironment& launch, int own_cores, int parent_cores);

/// The same for this process as it is.
CoreShare core_share(const LaunchEnvironment& launch);

}  // namespace headway
