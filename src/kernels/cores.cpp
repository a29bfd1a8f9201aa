#include "kernels/cores.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "headway/base/error.h"

namespace headway::kernels {
namespace {

int leading_number(const char* text) {
  int number = 0;
  std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::vector<int> cores_of_rank(const std::vector<int>& cores, int local_rank, int local_ranks) {
  const size_t begin = cores.size() * local_rank / local_ranks;
  const size_t end = cores.size() * (local_rank + 1) / local_ranks;
  if (cores.size() < static_cast<size_t>(local_ranks)) return {};
  return {cores.begin() + begin, cores.begin() + end};
}

void pin_to_core(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

int threads_from_environment() {
  if (const char* own = std::getenv("HEADWAY_NUM_THREADS")) {
    const int threads = leading_number(own);
    if (threads < 1) throw ConfigError(fmt::format("HEADWAY_NUM_THREADS is '{}', not a number of threads", own));
    return threads;
  }
  const char* openmp = std::getenv("OMP_NUM_THREADS");
  return openmp == nullptr ? 0 : std::max(0, leading_number(openmp));
}

}  // namespace headway::kernels
