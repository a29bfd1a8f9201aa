#pragma once

#include <vector>

namespace headway::kernels {

/// The cores that this process may run on, in order.
std::vector<int> allowed_cores();

/// The part of `cores` that one of several ranks on this host owns; empty with more ranks than cores.
std::vector<int> cores_of_rank(const std::vector<int>& cores, int local_rank, int local_ranks);

/// Restricts the calling thread to `core`. A system that refuses leaves the thread where it is.
void pin_to_core(int core);

/// The number in HEADWAY_NUM_THREADS, else in OMP_NUM_THREADS, else 0. Throws ConfigError if the first is no positive
/// number; OMP_NUM_THREADS may be a list ("4,2"), of which the first counts.
int threads_from_environment();

}  // namespace headway::kernels
