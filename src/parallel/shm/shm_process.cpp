#include "parallel/shm/shm_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "headway/base/error.h"

namespace headway {
namespace {

struct ProcessStatus {
  char state = 0;
  uint64_t start_time = 0;
};

/// The text of a file of /proc, or the errno that reading it gave.
struct ProcText {
  std::string text;
  int error = 0;
};

ProcText read_proc(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {"", errno};
  char buffer[1024];
  const ssize_t length = ::read(descriptor, buffer, sizeof(buffer));
  const int error = length < 0 ? errno : 0;
  ::close(descriptor);
  return {std::string(buffer, std::max<ssize_t>(length, 0)), error};
}

/// The fields of /proc/<pid>/stat that matter here; the command name before them may hold blanks and parentheses.
ProcessStatus parse_status(const std::string& text) {
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  ProcessStatus status;
  fields >> status.state;
  constexpr int kFieldsBetween = 18;  // start time is field 22, the state field 3
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  fields >> status.start_time;
  return status;
}

std::string status_path(int64_t pid) {
  return fmt::format("/proc/{}/stat", pid);
}

}  // namespace

ProcessIdentity own_process() {
  const int64_t pid = ::getpid();
  const ProcText status = read_proc(status_path(pid));
  if (status.error != 0) {
    throw CommunicationError(fmt::format("{}: {}", status_path(pid), std::strerror(status.error)));
  }
  return {pid, parse_status(status.text).start_time};
}

bool is_alive(const ProcessIdentity& process) {
  const ProcText file = read_proc(status_path(process.pid));
  if (file.error == ENOENT || file.error == ESRCH) return false;
  if (file.error != 0) return true;  // this process is in trouble, not the other one
  const ProcessStatus status = parse_status(file.text);
  return status.start_time == process.start_time && status.state != 'Z' && status.state != 'X';
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
