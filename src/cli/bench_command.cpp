#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "cli/bench_rank.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/launcher.h"
#include "cli/session.h"

namespace headway {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 27;
constexpr int64_t kMostSequences = 4096;
constexpr int64_t kMostRepetitions = 1000;

void check_ranges(const BenchOptions& options, const ModelPlan& plan) {
  const auto check = [](const char* option, int64_t value, int64_t least, int64_t most) {
    if (value >= least && value <= most) return;
    throw UsageError(fmt::format("{} is {}; it must be between {} and {}", option, value, least, most));
  };
  const BenchWork& work = options.work;
  check("--prompt-tokens", work.prompt_tokens, 1, kMostTokens);
  check("--gen-tokens", work.gen_tokens, 2, kMostTokens);  // the first belongs to the prefill
  check("--batch", work.sequences, 1, kMostSequences);
  check("--repetitions", options.repetitions, 1, kMostRepetitions);
  if (work.prompt_tokens + work.gen_tokens > plan.max_model_len) {
    throw UsageError(fmt::format("--prompt-tokens {} and --gen-tokens {} together exceed max_model_len {}",
                                 work.prompt_tokens, work.gen_tokens, plan.max_model_len));
  }
}

void run_bench(const BenchOptions& options) {
  const ModelPlan plan = plan_model(options.model);
  check_ranges(options, plan);
  if (plan.needs_launcher()) throw CLI::RuntimeError(run_ranks(static_cast<int>(plan.parallel.tp)));
  run_on_ranks(options.model, plan, [&](const ParallelState& state) { bench_on_rank(options, plan, state); });
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure prefill and decode against this machine's own limits");
  add_model_options(*command, options->model);
  BenchWork& work = options->work;
  command->add_option("--prompt-tokens", work.prompt_tokens, "Tokens of each prompt, of random ids")
      ->capture_default_str();
  command->add_option("--gen-tokens", work.gen_tokens, "New tokens of each sequence, at least 2")
      ->capture_default_str();
  command->add_option("--batch", work.sequences, "Sequences side by side")->capture_default_str();
  command->add_option("--repetitions", options->repetitions, "Runs; medians are shown")->capture_default_str();
  command->add_flag("--random-weights", options->random_weights, "Fill the model at random: config.json is enough");
  command->add_option("--profile", options->profile, "Record one more run: a Chrome trace in this file and a table");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options] { run_bench(*options); });
}

}  // namespace headway
