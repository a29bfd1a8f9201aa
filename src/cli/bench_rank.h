#pragma once

#include <filesystem>
#include <optional>

#include "cli/bench_report.h"
#include "cli/model_options.h"
#include "headway/parallel/parallel_state.h"

namespace headway {

struct BenchOptions {
  ModelOptions model;
  BenchWork work{.sequences = 1, .prompt_tokens = 512, .gen_tokens = 128};
  int64_t repetitions = 3;
  bool random_weights = false;
  std::optional<std::filesystem::path> profile;
  bool json = false;
};

/// Runs the bench as one of its ranks; rank 0 prints the report.
void bench_on_rank(const BenchOptions& options, const ModelPlan& plan, const ParallelState& state);

}  // namespace headway
