#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/bench_limits.h"
#include "cli/bench_run.h"
#include "headway/config/parallel_config.h"

namespace headway {

/// One repetition: the machine's reach, where it could be measured, and the model's times right after.
struct BenchRepetition {
  std::optional<MachineReach> reach;
  BenchTimes times;
};

struct BenchReport {
  std::string architecture;
  std::string dtype;
  std::string quantize = "none";
  ParallelConfig parallel;
  int threads = 1;  ///< of each rank
  BenchWork work;
  std::vector<RankBytes> ranks;
  double ops_per_token = 0;
  double load_s = 0;
  std::vector<BenchRepetition> repetitions;
};

/// The keys are those of docs/bench.md; limits that could not be measured are null.
Json bench_json(const BenchReport& report);

std::string bench_text(const BenchReport& report, bool colours);

}  // namespace headway
