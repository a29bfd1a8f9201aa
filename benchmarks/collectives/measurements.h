#pragma once

#include <vector>

#include "collectives/samples.h"
#include "headway/parallel/group_coordinator.h"

namespace headway::benchmarks {

/// Times collectives over both groups, which have the same members, in turns of a few calls each, so that whatever else
/// the machine does meets both alike. All members call it; the times are this member's.
std::vector<Samples> measure_collectives(const GroupCoordinator& shm, const GroupCoordinator& gloo, int calls);

/// One-way latency of messages from member 0 to the last one, while the reader spins (a message every 20 us) and
/// while it sleeps (every 5 ms). All members call it; member 0 gets the times.
std::vector<Samples> measure_message_queue(const GroupCoordinator& group, int local_ranks, int messages);

}  // namespace headway::benchmarks
