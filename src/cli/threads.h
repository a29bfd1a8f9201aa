#pragma once

#include <cstdint>
#include <optional>

#include "headway/parallel/launch.h"

namespace headway {

/// Processors that the system lets this process use, and those of the machine.
struct Processors {
  int usable = 1;
  int all = 1;
};

Processors processors();

/// Threads for one rank: what was asked for, else OMP_NUM_THREADS, else this rank's share of the processors. A
/// launcher that has bound each rank to some of them has shared them out already.
int threads_for_rank(std::optional<int64_t> asked, const LaunchEnvironment& launch, Processors processors,
                     const EnvironmentLookup& lookup = process_environment);

}  // namespace headway
