#include "cli/threads.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace headway {
namespace {

std::optional<int> positive_number(const std::optional<std::string>& text) {
  int number = 0;
  if (!text) return std::nullopt;
  std::from_chars(text->data(), text->data() + text->size(), number);  // "4,2" means 4 at the outermost level
  return number > 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

Processors processors() {
  const int all = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {all, all};
  return {std::max(1, CPU_COUNT(&set)), all};
}

int threads_for_rank(std::optional<int64_t> asked, const LaunchEnvironment& launch, Processors processors,
                     const EnvironmentLookup& lookup) {
  if (asked) return static_cast<int>(*asked);
  if (const auto threads = positive_number(lookup("OMP_NUM_THREADS"))) return *threads;
  const bool bound_by_launcher = launch.source != "headway" && processors.usable < processors.all;
  return bound_by_launcher ? processors.usable : std::max(1, processors.usable / launch.local_world_size);
}

}  // namespace headway
