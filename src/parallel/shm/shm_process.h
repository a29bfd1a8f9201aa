#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headway {

/// A process of this host, told apart from a later one that was given the same number.
struct ProcessIdentity {
  int64_t pid = 0;
  uint64_t start_time = 0;  ///< clock ticks after boot
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

/// Throws CommunicationError if /proc does not show this process.
ProcessIdentity own_process();

/// False once the process has ended, even if nobody has collected its exit status; true if that cannot be found out.
bool is_alive(const ProcessIdentity& process);

/// Two processes with equal identities can map each other's memory files. HEADWAY_HOST_ID overrides it, so that one
/// machine can play several hosts; else it is the boot and the process-number namespace.
/// Throws CommunicationError if the kernel tells neither.
std::string host_identity();

/// The processors that this process may run on.
std::vector<int> allowed_cpus();

/// How many processors' worth of time the control group of this process may use; a large number if unlimited.
int cpu_quota();

}  // namespace headway
