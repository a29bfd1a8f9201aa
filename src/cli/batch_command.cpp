#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "cli/batch_run.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/launcher.h"
#include "cli/progress_bar.h"
#include "cli/serving.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "headway/kernels/threads.h"

namespace headway {
namespace {

struct BatchOptions {
  ModelOptions model;
  ServingOptions serving;
  std::filesystem::path input;
  std::filesystem::path output;
};

/// What rank 0 alone has.
struct Files {
  ServedModel served;
  std::optional<BatchInput> input;
  std::optional<BatchOutput> output;
};

void check_two_files(const std::filesystem::path& input, const std::filesystem::path& output) {
  std::error_code none;  // what cannot be read is refused when it is opened
  if (std::filesystem::equivalent(input, output, none)) {
    throw UsageError(fmt::format("--input and --output are both {}", input.string()));
  }
}

void check_same_batch(const BatchInput& input, const BatchOutput& output) {
  size_t found = 0;
  for (const BatchEntry& entry : input.entries()) found += output.done().contains(entry.custom_id);
  if (found == output.done().size()) return;
  throw UsageError(fmt::format("--output has {} results, of which {} are of requests that --input lacks",
                               output.done().size(), output.done().size() - found));
}

/// Opens the files before any weight is read; on every rank the number of requests.
int64_t open_files(const BatchOptions& options, const ModelPlan& plan, const GroupCoordinator& world, Files& files) {
  return decide_on_first_rank(world, [&] {
    files.served = read_served_model(plan, options.serving);
    check_two_files(options.input, options.output);
    files.input.emplace(options.input);
    files.output.emplace(options.output);
    check_same_batch(*files.input, *files.output);
    return static_cast<int64_t>(files.input->entries().size());
  });
}

std::string summary_line(const BatchRun::Counts& counts, double seconds) {
  return fmt::format(
      "batch: {} requests in {:.1f} s: {} answered, {} failed, {} found in the output; {} tokens at {:.1f} tokens/s",
      counts.total, seconds, counts.answered, counts.failed, counts.found, counts.completion_tokens,
      static_cast<double>(counts.completion_tokens) / seconds);
}

void work_off(LLMEngine& engine, Files& files, const BatchOptions& options) {
  TextGenerator generator(engine, files.served.tokenizer ? &*files.served.tokenizer : nullptr);
  BatchRun run(generator, files.served, *files.input, *files.output, 2 * options.serving.max_num_seqs);
  ProgressBar bar("batch", [](int64_t requests) { return fmt::format("{} requests", requests); });
  const auto start = std::chrono::steady_clock::now();
  const auto counts = run.run([&](const BatchRun::Counts& now) { bar.update(now.done(), now.total); });
  bar.finish(summary_line(counts, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()));
}

void run_on_rank(const BatchOptions& options, const ModelPlan& plan, const ParallelState& state) {
  Files files;
  open_files(options, plan, state.world(), files);
  const EngineOptions engine_options = serving_engine_options(options.model, plan, options.serving, files.served);
  const LoadedModel loaded = load_with_progress(plan, state);
  LLMEngine engine(*loaded.model, state, engine_options);
  kernels::pin_calling_thread();
  if (!engine.is_driver()) return engine.follow();
  work_off(engine, files, options);
}

void run_batch(const BatchOptions& options) {
  const ModelPlan plan = plan_model(options.model);
  if (plan.needs_launcher()) throw CLI::RuntimeError(run_ranks(static_cast<int>(plan.parallel.tp)));
  run_on_ranks(options.model, plan, [&](const ParallelState& state) { run_on_rank(options, plan, state); });
}

}  // namespace

void add_batch_command(CLI::App& app) {
  auto options = std::make_shared<BatchOptions>();
  auto* command = app.add_subcommand("batch", "Answer a file of requests in OpenAI's batch format");
  add_model_options(*command, options->model);
  add_serving_options(*command, options->serving);
  command->add_option("--input", options->input, "JSONL file of requests")->required();
  command->add_option("--output", options->output, "JSONL file that gets the results; what it has is not done again")
      ->required();
  command->callback([options] { run_batch(*options); });
}

}  // namespace headway
