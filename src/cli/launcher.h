#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "headway/parallel/launch.h"

namespace headway {

/// Headway's own launcher. Starts this program `ranks` times with the same arguments and with the variables that tell
/// each its rank, passes SIGINT, SIGTERM and SIGHUP on, and returns the exit code of the whole: 0, or that of the
/// first rank to fail (128 + n for signal n). As soon as one rank fails the others are ended: SIGTERM, then SIGKILL
/// two seconds later. When this process is killed, its ranks are killed by the kernel.
int run_ranks(int ranks);

/// As above with other `arguments` after the program's name; after `limit` the ranks are ended as if one had failed.
int run_ranks(int ranks, const std::vector<std::string>& arguments, std::chrono::seconds limit);

/// Called by every rank once all have met: removes the empty folder in which the launcher let them meet, so that
/// nothing is left behind should it be killed.
void remove_store_folder(const LaunchEnvironment& launch);

}  // namespace headway
