#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/launcher.h"
#include "cli/model_options.h"
#include "cli/private_folder.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "cli/verify_job.h"
#include "cli/verify_layouts.h"
#include "cli/verify_prompts.h"
#include "cli/verify_rank.h"
#include "cli/verify_report.h"
#include "cli/verify_trace.h"
#include "headway/base/log.h"
#include "kernels/cores.h"

namespace headway {
namespace {

namespace fs = std::filesystem;

constexpr char kRankCommand[] = "verify-rank";
constexpr int64_t kDefaultTokens = 64;
constexpr int64_t kDefaultMostRanks = 4;
constexpr int64_t kMostRanks = 64;
constexpr int64_t kDefaultTimeLimit = 1800;
constexpr int64_t kLongestTimeLimit = 86400;

struct VerifyOptions {
  ModelOptions model;
  std::string layouts = "all";
  std::optional<fs::path> prompts;
  int64_t tokens = kDefaultTokens;
  std::optional<int64_t> ranks;
  std::optional<fs::path> reference;
  int64_t time_limit = kDefaultTimeLimit;
  bool bisect = false;
  bool json = false;
};

/// As many as there are cores, but at least two and no more than four.
int64_t most_ranks(const VerifyOptions& options) {
  if (options.ranks) return *options.ranks;
  if (options.layouts != "all") return kMostRanks;
  return std::clamp(static_cast<int64_t>(kernels::allowed_cores().size()), int64_t{2}, kDefaultMostRanks);
}

void check_ranges(const VerifyOptions& options) {
  const auto check = [](const char* option, int64_t value, int64_t least, int64_t most) {
    if (value >= least && value <= most) return;
    throw UsageError(fmt::format("{} is {}; it must be between {} and {}", option, value, least, most));
  };
  check("--tokens", options.tokens, 1, int64_t{1} << 20);
  check("--ranks", most_ranks(options), 1, kMostRanks);
  check("--time-limit", options.time_limit, 1, kLongestTimeLimit);
}

/// The arguments by which a rank of `layout` learns of its job.
std::vector<std::string> rank_arguments(const ModelOptions& options, const VerifyLayout& layout, const fs::path& job) {
  std::vector<std::string> arguments{kRankCommand,
                                     "--job=" + job.string(),
                                     "--model=" + options.model.string(),
                                     fmt::format("--tp={}", layout.tp),
                                     fmt::format("--attn-tp={}", layout.attn_tp),
                                     "--embedding-group=" + options.embedding_group,
                                     "--lm-head-group=" + options.lm_head_group,
                                     "--dtype=" + options.dtype,
                                     "--device=" + options.device,
                                     "--quantize=" + options.quantize,
                                     fmt::format("--collective-timeout={}", options.collective_timeout)};
  if (options.threads) arguments.push_back(fmt::format("--threads={}", *options.threads));
  return arguments;
}

/// One run of the command: starts the ranks of one layout after another and gathers what they find.
class Verification {
 public:
  Verification(const VerifyOptions& options, const ModelPlan& plan, std::vector<VerifyLayout> layouts)
      : options_(options), plan_(plan), layouts_(std::move(layouts)) {}

  VerifyReport run() {
    VerifyReport report;
    report.model_name = fs::absolute(options_.model.model / ".").lexically_normal().parent_path().filename().string();
    report.model = plan_.config;
    run_alone(report);
    for (const VerifyLayout& layout : layouts_) report.layouts.push_back(run_layout(layout));
    return report;
  }

 private:
  fs::path trace() const { return folder_.path() / "trace.safetensors"; }

  /// T=1, which every layout is compared with.
  void run_alone(VerifyReport& report) {
    VerifyJob job = new_job(trace().string());
    if (options_.reference) {
      job.baseline = fs::absolute(*options_.reference);
    } else {
      job.prompts = verify_prompts(options_.prompts, plan_.folder, plan_.config.vocab_size);
      job.tokens = options_.tokens;
    }
    const int exit_code = start({1, 1}, job);
    if (exit_code != 0) throw CLI::RuntimeError(exit_code);
    const RankFindings findings = read_findings(job.results, 0);
    report.dtype = findings.dtype;
    if (options_.reference) report.reference = LayoutOutcome{{1, 1}, 0, findings.comparison, {}};
    const LogitsTrace written(trace(), plan_.config.vocab_size);
    for (const TracedPrompt& prompt : written.prompts()) {
      report.prompt_tokens.push_back(static_cast<int64_t>(prompt.token_ids.size()));
      report.tokens = std::max(report.tokens, static_cast<int64_t>(prompt.greedy.size()));
    }
  }

  LayoutOutcome run_layout(const VerifyLayout& layout) {
    VerifyJob job = new_job({});
    job.baseline = trace();
    LayoutOutcome outcome{layout, start(layout, job), {}, {}};
    if (outcome.exit_code != 0) return outcome;
    std::vector<RankFindings> findings;
    for (int rank = 0; rank < layout.tp; ++rank) findings.push_back(read_findings(job.results, rank));
    outcome.comparison = findings.front().comparison;
    if (options_.bisect && !outcome.agrees()) outcome.bisection = bisect(findings);
    return outcome;
  }

  /// A job with a folder of its own for what the ranks find.
  VerifyJob new_job(const fs::path& trace) {
    VerifyJob job;
    job.trace = trace;
    if (options_.bisect) job.layers = folder_.path() / "layers";
    job.results = folder_.path() / fmt::format("results-{}", started_);
    fs::create_directory(job.results);
    if (options_.bisect) fs::create_directories(job.layers);
    return job;
  }

  /// Runs the ranks of a layout to their end and returns their exit code. Ends the command if a signal asked them to.
  int start(const VerifyLayout& layout, const VerifyJob& job) {
    ++started_;
    log(LogLevel::info, fmt::format("[{}/{}] T={} A={}", started_, layouts_.size() + 1, layout.tp, layout.attn_tp));
    write_job(job.results / "job.json", job);
    const int exit_code =
        run_ranks(static_cast<int>(layout.tp), rank_arguments(options_.model, layout, job.results / "job.json"),
                  std::chrono::seconds(options_.time_limit));
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      if (exit_code == 128 + signal) throw CLI::RuntimeError(exit_code);
    }
    return exit_code;
  }

  const VerifyOptions& options_;
  const ModelPlan& plan_;
  std::vector<VerifyLayout> layouts_;
  PrivateFolder folder_;
  size_t started_ = 0;
};

void run_verify(const VerifyOptions& options) {
  check_ranges(options);
  const ModelPlan plan = plan_model(options.model);
  if (plan.launch.source != "single") {
    throw UsageError(fmt::format("verify starts its ranks itself; it cannot run under {}", plan.launch.source));
  }
  const auto layouts = verify_layouts(options.layouts, plan.config, most_ranks(options));
  const VerifyReport report = Verification(options, plan, layouts).run();
  write_text(STDOUT_FILENO,
             options.json ? dump_json(verify_json(report)) + "\n" : verify_text(report, colours_on(STDOUT_FILENO)));
  if (!report.agrees()) throw CLI::RuntimeError(kExitFailure);
}

/// What the ranks that verify starts run; not for users.
void add_rank_command(CLI::App& app) {
  struct RankOptions {
    ModelOptions model;
    fs::path job;
  };
  auto options = std::make_shared<RankOptions>();
  CLI::App* command = app.add_subcommand(kRankCommand, "One rank of a layout that verify runs");
  command->group("");  // hidden
  add_model_options(*command, options->model);
  command->add_option("--job", options->job, "What to do")->required();
  command->callback([options] {
    const ModelPlan plan = plan_model(options->model);
    const VerifyJob job = read_job(options->job);
    run_on_ranks(options->model, plan, [&](const ParallelState& state) { verify_on_rank(job, plan, state); });
  });
}

}  // namespace

void add_verify_command(CLI::App& app) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand("verify", "Compare logits and tokens of layouts with those of one rank");
  add_execution_options(*command, options->model);
  command->add_option("--layouts", options->layouts, "all, or TP and attention sizes T:A,T:A")->capture_default_str();
  command->add_option("--ranks", options->ranks, "Ranks of a layout at most; default: cores, from 2 to 4");
  auto* prompts = command->add_option("--prompts", options->prompts,
                                      "File: a prompt a line, or a JSON list of texts "
                                      "and lists of ids; default: five short ones");
  auto* tokens =
      command->add_option("--tokens", options->tokens, "Greedy tokens after each prompt")->capture_default_str();
  command
      ->add_option("--reference", options->reference,
                   "Also compare T=1 with this file of tools/reference_logits.py, "
                   "whose prompts and tokens are taken")
      ->excludes(prompts)
      ->excludes(tokens);
  command->add_option("--time-limit", options->time_limit, "Seconds after which the ranks of a layout are ended")
      ->capture_default_str();
  command->add_flag("--bisect", options->bisect, "Where a layout differs, find the first layer and its ranks");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options] { run_verify(*options); });
  add_rank_command(app);
}

}  // namespace headway
