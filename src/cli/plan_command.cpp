#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/model_options.h"
#include "cli/quantity.h"
#include "cli/terminal.h"
#include "headway/base/error.h"
#include "headway/plan/report.h"
#include "headway/plan/search.h"

namespace headway {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLargestWorld = 1024;
constexpr int64_t kMostSequences = int64_t{1} << 20;
constexpr int64_t kMostTokens = int64_t{1} << 27;
constexpr int64_t kDefaultContext = 2048;
constexpr int64_t kDefaultPrompt = 512;
constexpr int64_t kThroughputSequences = 32;
constexpr size_t kCandidatesShown = 5;

/// The options as they were typed; absent ones are empty.
struct PlanOptions {
  std::string model;
  std::optional<int64_t> world, tp, attn_tp;
  std::string embedding_group, lm_head_group;
  std::string attn_replicas = "replicate";
  std::string dtype = "auto";
  std::string objective = "latency";
  std::optional<int64_t> max_model_len, max_seqs, context, prompt_tokens;
  std::string rank_memory, reserve;
  std::string machine = "cpu";
  std::string memory_bandwidth, compute, collective_latency, collective_bandwidth;
  bool json = false;
  std::string html;
};

std::optional<VocabGroup> vocab_group(const std::string& name) {
  return name.empty() ? std::nullopt : std::optional(vocab_group_from_name(name));
}

int64_t world_of(const PlanOptions& options) {
  if (!options.world && !options.tp) {
    throw ConfigError("plan: --world (how many ranks there are) or --tp is needed");
  }
  const int64_t world = options.world.value_or(options.tp.value_or(1));
  if (world < 1 || world > kLargestWorld) {
    throw ConfigError(fmt::format("plan: a world of {} ranks is not between 1 and {}", world, kLargestWorld));
  }
  if (options.tp && *options.tp != world) {
    throw ConfigError(
        fmt::format("tp: a TP size of {} in a world of {} is not served; they must be equal", *options.tp, world));
  }
  return world;
}

Workload workload_of(const PlanOptions& options, const ModelConfig& model, Objective objective) {
  Workload workload;
  workload.sequences = options.max_seqs.value_or(objective == Objective::throughput ? kThroughputSequences : 1);
  workload.max_model_len = options.max_model_len.value_or(model.max_position_embeddings);
  workload.context = options.context.value_or(std::min(workload.max_model_len, kDefaultContext));
  workload.prompt_tokens = options.prompt_tokens.value_or(std::min(workload.max_model_len, kDefaultPrompt));
  return workload;
}

MachineFigures figures_of(const PlanOptions& options) {
  MachineFigures figures = machine_figures(options.machine);
  if (!options.memory_bandwidth.empty()) {
    figures.memory_bytes_per_s = parse_bytes_per_second(options.memory_bandwidth, "--memory-bandwidth");
  }
  if (!options.compute.empty()) figures.operations_per_s = parse_operations_per_second(options.compute, "--compute");
  if (!options.collective_latency.empty()) {
    figures.collective_latency_s = parse_seconds(options.collective_latency, "--collective-latency");
  }
  if (!options.collective_bandwidth.empty()) {
    figures.collective_bytes_per_s = parse_bytes_per_second(options.collective_bandwidth, "--collective-bandwidth");
  }
  return figures;
}

std::optional<RankMemory> memory_of(const PlanOptions& options) {
  if (options.rank_memory.empty()) {
    if (!options.reserve.empty()) throw ConfigError("--reserve: there is nothing to keep back without --rank-memory");
    return std::nullopt;
  }
  RankMemory memory{parse_bytes(options.rank_memory, "--rank-memory"), 0};
  if (!options.reserve.empty()) memory.reserve = parse_bytes(options.reserve, "--reserve");
  return memory;
}

/// "SmolLM2" of models/SmolLM2, models/SmolLM2/ or models/SmolLM2/config.json.
std::string model_name(const std::string& path) {
  fs::path full = fs::absolute(path).lexically_normal();
  if (full.filename() == "config.json" || !full.has_filename()) full = full.parent_path();
  return full.filename().string();
}

/// The layout whose sizes were given, with the engine's defaults for the rest.
Plan given_plan(const PlanOptions& options, const ModelConfig& model, DType dtype) {
  ParallelConfig parallel = resolve_parallel_config(model, world_of(options), options.tp, options.attn_tp,
                                                    vocab_group(options.embedding_group).value_or(VocabGroup::tp),
                                                    vocab_group(options.lm_head_group).value_or(VocabGroup::tp));
  parallel.attn_replicas = attn_replicas_from_name(options.attn_replicas);  // planned before it is served
  return make_plan(model, parallel, dtype);
}

SearchOptions search_options(const PlanOptions& options, const PlanReport& report, DType dtype) {
  SearchOptions search;
  search.world = world_of(options);
  search.objective = *report.objective;
  search.dtype = dtype;
  search.embedding_group = vocab_group(options.embedding_group);
  search.lm_head_group = vocab_group(options.lm_head_group);
  search.attn_replicas = {attn_replicas_from_name(options.attn_replicas)};
  search.figures = report.figures;
  search.workload = report.workload;
  search.memory = report.memory;
  return search;
}

PlanReport make_report(const PlanOptions& options, const ModelConfig& model) {
  const Objective objective = objective_from_name(options.objective);
  const std::optional<DType> dtype = dtype_of_option(options.dtype);
  PlanReport report;
  report.model_name = model_name(options.model);
  report.dtype_assumed = !dtype && !model.dtype;
  report.figures = figures_of(options);
  report.workload = workload_of(options, model, objective);
  report.memory = memory_of(options);
  if (options.tp || options.attn_tp) {
    report.candidates = {assess(given_plan(options, model, planned_dtype(model, dtype)), report.figures,
                                report.workload, report.memory)};
    return report;
  }
  report.objective = objective;
  report.candidates = search_layouts(model, search_options(options, report, planned_dtype(model, dtype)));
  report.layouts_tried = report.candidates.size();
  report.candidates.resize(std::min(report.candidates.size(), kCandidatesShown));
  return report;
}

void write_page(const std::string& path, const std::string& page) {
  std::ofstream file(path, std::ios::binary);
  file << page;
  file.close();
  if (!file) throw Error(fmt::format("--html: cannot write {}", path));
  write_line(STDERR_FILENO, fmt::format("Wrote {} ({} bytes)", path, page.size()));
}

void run_plan(const PlanOptions& options) {
  const ModelConfig model = ModelConfig::from_pretrained(options.model);
  const PlanReport report = as_usage([&] { return make_report(options, model); });
  if (!options.html.empty()) write_page(options.html, plan_html(report));
  write_text(STDOUT_FILENO, options.json ? plan_json(report) + "\n" : plan_text(report, colours_on(STDOUT_FILENO)));
}

void add_layout_options(CLI::App& command, PlanOptions& options) {
  command.add_option("--model", options.model, "Model folder, or a config.json")->required();
  command.add_option("--world", options.world,
                     "Ranks in all; without --tp and --attn-tp the best layouts are searched");
  command.add_option("--tp", options.tp, "Tensor-parallel size");
  command.add_option("--attn-tp", options.attn_tp, "Size of the attention group lm_head_tp [largest legal]");
  command.add_option("--embedding-group", options.embedding_group, "tp, lm_head_tp or none [tp; a search tries all]");
  command.add_option("--lm-head-group", options.lm_head_group, "tp, lm_head_tp or none [tp; a search tries all]");
  command.add_option("--attn-replicas", options.attn_replicas, "What attention replicas do: replicate or dp")
      ->capture_default_str();
  command.add_option("--dtype", options.dtype, "auto, fp32, bf16 or fp16")->capture_default_str();
}

void add_workload_options(CLI::App& command, PlanOptions& options) {
  command.add_option("--for", options.objective, "What to search for: latency, throughput or memory")
      ->capture_default_str();
  command.add_option("--max-model-len", options.max_model_len, "Tokens that a sequence may reach [the model's]")
      ->check(CLI::Range(int64_t{1}, kMostTokens));
  command.add_option("--max-seqs", options.max_seqs, "Sequences decoded together [1; 32 with --for throughput]")
      ->check(CLI::Range(int64_t{1}, kMostSequences));
  command.add_option("--context", options.context, "Cached tokens of each while it decodes [2048 at most]")
      ->check(CLI::Range(int64_t{0}, kMostTokens));
  command.add_option("--prompt-tokens", options.prompt_tokens, "Tokens of a prompt [512 at most]")
      ->check(CLI::Range(int64_t{1}, kMostTokens));
  command.add_option("--rank-memory", options.rank_memory, "Memory of a rank, e.g. 24GiB: how much KV fits beside");
  command.add_option("--reserve", options.reserve, "What of it is kept back for activations and the runtime [0]");
}

void add_machine_options(CLI::App& command, PlanOptions& options) {
  command.add_option("--machine", options.machine, "Default figures to predict with: cpu or gpu")
      ->capture_default_str();
  command.add_option("--memory-bandwidth", options.memory_bandwidth, "Read bandwidth of a rank, e.g. 14GB/s");
  command.add_option("--compute", options.compute, "Compute of a rank, e.g. 1TFLOP/s");
  command.add_option("--collective-latency", options.collective_latency, "Of a smallest collective of two, e.g. 3us");
  command.add_option("--collective-bandwidth", options.collective_bandwidth, "A rank's, to its peers, e.g. 5GB/s");
}

}  // namespace

void add_plan_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("plan", "Show what each rank of a layout would hold and send");
  const auto options = std::make_shared<PlanOptions>();
  add_layout_options(*command, *options);
  add_workload_options(*command, *options);
  add_machine_options(*command, *options);
  command->add_flag("--json", options->json, "Print one JSON object");
  command->add_option("--html", options->html, "Also write a self-contained page to this file");
  command->callback([options] { run_plan(*options); });
}

}  // namespace headway
