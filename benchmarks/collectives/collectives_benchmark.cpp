// Shared-memory collectives against Gloo, and the message queue, between processes of this machine in one run.
//   collectives_benchmark [--ranks N] [--calls N] [--pin] [--json]

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/measurements.h"
#include "headway/parallel/parallel_state.h"
#include "parallel/shm/shm_process.h"

namespace headway::benchmarks {
namespace {

struct Arguments {
  int ranks = 2;
  int calls = 2000;
  bool pin = false;
  bool json = false;
};

[[noreturn]] void explain_usage() {
  std::fprintf(stderr, "usage: collectives_benchmark [--ranks N] [--calls N] [--pin] [--json]\n");
  std::exit(2);
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto number = [&] {
      const int value = i + 1 < argc ? std::atoi(argv[++i]) : 0;
      if (value < 2) explain_usage();
      return value;
    };
    if (option == "--ranks") {
      arguments.ranks = number();
    } else if (option == "--calls") {
      arguments.calls = number();
    } else if (option == "--pin") {
      arguments.pin = true;
    } else if (option == "--json") {
      arguments.json = true;
    } else {
      explain_usage();
    }
  }
  return arguments;
}

/// To one of the allowed processors, in turn.
void pin(int rank) {
  const std::vector<int> cpus = allowed_cpus();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpus[rank % cpus.size()], &set);
  ::sched_setaffinity(0, sizeof(set), &set);
}

void run_rank(const LaunchEnvironment& launch, const Arguments& arguments) {
  if (arguments.pin) pin(launch.rank.value);
  at::set_num_threads(1);  // what Gloo's side does with ATen would otherwise start a thread per processor in each rank
  DistributedOptions gloo_options;
  gloo_options.backend = "gloo";
  const auto with_shm = ParallelState::create(launch, launch.world_size, 1);
  const auto with_gloo = ParallelState::create(launch, launch.world_size, 1, gloo_options);
  if (with_shm->world().backend_name() != std::string("shm")) throw std::runtime_error("shared memory is not in use");

  std::vector<Samples> results = measure_collectives(with_shm->world(), with_gloo->world(), arguments.calls);
  for (Samples& samples : measure_message_queue(with_shm->world(), launch.world_size, arguments.calls)) {
    results.push_back(std::move(samples));
  }
  if (launch.rank.value != 0) return;
  const std::string text = arguments.json ? as_json(results, arguments.ranks, arguments.pin) + "\n" : as_table(results);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

/// Runs every rank in a process of its own; returns how many failed.
int run_ranks(const Arguments& arguments) {
  LaunchEnvironment launch;
  launch.world_size = launch.local_world_size = arguments.ranks;
  launch.source = "benchmark";
  launch.job_id = fmt::format("collectives-benchmark-{}", ::getpid());
  for (int rank = 0; rank < arguments.ranks; ++rank) {
    if (::fork() != 0) continue;
    launch.rank = GlobalRank{rank};
    launch.local_rank = rank;
    try {
      run_rank(launch, arguments);
      ::_exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      ::_exit(1);
    }
  }
  int failed = 0;
  for (int status = 0; ::wait(&status) > 0;) failed += status != 0;
  return failed;
}

}  // namespace
}  // namespace headway::benchmarks

int main(int argc, char** argv) {
  return headway::benchmarks::run_ranks(headway::benchmarks::parse(argc, argv)) == 0 ? 0 : 1;
}
