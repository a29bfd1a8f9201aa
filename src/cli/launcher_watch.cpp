#include "cli/launcher_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "cli/errors.h"

namespace headway {
namespace {

constexpr std::chrono::milliseconds kPause{300};
constexpr pid_t kInit = 1;

void watch(pid_t launcher, const LaunchEnvironment& launch) {
  while (::getppid() == launcher) std::this_thread::sleep_for(kPause);
  print_error(
      fmt::format("rank {}: the launcher ({}, process {}) is gone", launch.rank.value, launch.source, launcher));
  std::_Exit(kExitFailure);
}

}  // namespace

void end_with_launcher(const LaunchEnvironment& launch) {
  const bool started_by_one =
      launch.source == "openmpi" || launch.source == "torchrun" || launch.source == "pmi" || launch.source == "slurm";
  const pid_t launcher = ::getppid();
  if (started_by_one && launcher != kInit) std::thread(watch, launcher, launch).detach();
}

}  // namespace headway
