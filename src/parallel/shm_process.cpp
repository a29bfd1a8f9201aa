#include "parallel/shm_process.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "headway/base/error.h"

namespace headway {
namespace {

struct ProcessStatus {
  char state = 0;
  uint64_t start_time = 0;
};

/// The fields of /proc/<pid>/stat that matter here; the command name before them may hold blanks and parentheses.
std::optional<ProcessStatus> read_status(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  ProcessStatus status;
  fields >> status.state;
  constexpr int kFieldsBetween = 18;  // start time is field 22, the state field 3
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  fields >> status.start_time;
  if (!fields) return std::nullopt;
  return status;
}

}  // namespace

ProcessIdentity own_process() {
  const int64_t pid = ::getpid();
  const auto status = read_status(pid);
  if (!status) throw CommunicationError(fmt::format("/proc/{}/stat of this process cannot be read", pid));
  return {pid, status->start_time};
}

bool is_alive(const ProcessIdentity& process) {
  const auto status = read_status(process.pid);
  return status && status->start_time == process.start_time && status->state != 'Z' && status->state != 'X';
}

std::string host_identity() {
  const char* chosen = std::getenv("HEADWAY_HOST_ID");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::error_code error;
  const auto pid_namespace = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  if (!(file >> boot) || error) {
    throw CommunicationError("this host cannot be identified: no boot_id or process namespace under /proc");
  }
  return boot + " " + pid_namespace.string();
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) {  // more processors than the set holds
    const long count = ::sysconf(_SC_NPROCESSORS_ONLN);
    for (int cpu = 0; cpu < count; ++cpu) cpus.push_back(cpu);
    return cpus;
  }
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

int cpu_quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");  // "max 100000" or "200000 100000": microseconds in each period
  double quota = 0;
  double period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return std::numeric_limits<int>::max();
  return static_cast<int>((quota + period - 1) / period);
}

}  // namespace headway
