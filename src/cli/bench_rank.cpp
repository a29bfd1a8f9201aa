#include "cli/bench_rank.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "cli/bench_machine.h"
#include "cli/bench_profile.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "cli/verify_compare.h"
#include "headway/base/error.h"
#include "headway/kernels/threads.h"

namespace headway {
namespace {

constexpr int64_t kWarmUpTokens = 4;

EngineOptions engine_options(const BenchOptions& options) {
  EngineOptions engine;
  engine.max_num_seqs = options.work.sequences;
  engine.max_model_len = options.work.prompt_tokens + options.work.gen_tokens;
  engine.max_batch_tokens = std::max(engine.max_batch_tokens, options.work.sequences);
  engine.kv_blocks = options.model.kv_blocks;
  return engine;
}

/// One rank's part of the bench.
class Bench {
 public:
  Bench(const BenchOptions& options, const ModelPlan& plan, const ParallelState& state)
      : options_(options),
        state_(state),
        loaded_(options.random_weights ? random_model(plan.config, plan.parallel, state, load_options(plan))
                                       : load_with_progress(plan, state)) {
    report_.architecture = plan.config.architecture;
    report_.dtype = dtype_name(model().dtype());
    report_.quantize = options.model.quantize;
    report_.parallel = plan.parallel;
    report_.work = options.work;
    report_.load_s = loaded_.load_seconds;
    gather_ranks();
  }

  void run() {
    warm_up();
    for (int64_t i = 0; i < options_.repetitions; ++i) repeat();
    if (state_.world().is_first()) print();
    if (options_.profile) profile();
  }

 private:
  CausalLM& model() { return *loaded_.model; }

  LoadOptions load_options(const ModelPlan& plan) const {
    LoadOptions load;
    load.dtype = plan.dtype;
    load.device = state_.device();
    load.quantization = plan.quantization;
    return load;
  }

  void gather_ranks() {
    const RankBytes own = rank_bytes(model());
    const auto weights = gather_numbers(static_cast<double>(own.weights), state_);
    const auto kv = gather_numbers(static_cast<double>(own.kv_per_token), state_);
    for (size_t r = 0; r < weights.size(); ++r) {
      report_.ranks.push_back({static_cast<int64_t>(weights[r]), static_cast<int64_t>(kv[r])});
    }
  }

  /// Calls `before` on every rank when its threads are set up, then runs `work` on all together: the times, on rank 0.
  template <typename Before>
  BenchTimes generate(const BenchWork& work, const Before& before) {
    LLMEngine engine(model(), state_, engine_options(options_));
    kernels::pin_calling_thread();
    before();
    BenchTimes times;
    if (engine.is_driver()) {
      times = run_bench_work(engine, work, model().config().vocab_size);
      engine.stop();
    } else {
      engine.follow();
    }
    return times;
  }

  void warm_up() {
    BenchWork work = options_.work;
    work.sequences = 1;
    work.gen_tokens = std::min(kWarmUpTokens, work.gen_tokens);
    generate(work, [this] {
      report_.threads = kernels::num_threads();
      if (!state_.device().is_cpu()) return;
      machine_.emplace(model(), state_, options_.work, engine_options(options_).max_batch_tokens);
      report_.ops_per_token = machine_->ops_per_token();
    });
  }

  void repeat() {
    BenchRepetition repetition;
    repetition.times = generate(options_.work, [&] {
      if (machine_) repetition.reach = machine_->measure();
    });
    report_.repetitions.push_back(repetition);
  }

  void print() const {
    write_text(STDOUT_FILENO,
               options_.json ? dump_json(bench_json(report_)) + "\n" : bench_text(report_, colours_on(STDOUT_FILENO)));
  }

  /// One more run, recorded: what recording takes is in no figure.
  void profile() {
    TraceRecorder recorder;
    const BenchTimes times = generate(options_.work, [&] { recorder.take(); });
    const std::vector<RankTrace> ranks = gather_traces(recorder.take());
    if (!state_.world().is_first()) return;
    std::ofstream file(*options_.profile);
    if (!(file << chrome_trace(ranks)) || !file.flush()) {
      throw Error(fmt::format("{} cannot be written", options_.profile->string()));
    }
    const int table = options_.json ? STDERR_FILENO : STDOUT_FILENO;
    write_text(table, "\n" + profile_text(ranks.front(), times.decode_begin_ns, colours_on(table)));
  }

  std::vector<RankTrace> gather_traces(const std::vector<TraceEvent>& own) const {
    Json events = Json::array();
    for (const TraceEvent& event : own) events.push_back({event.name, event.begin_ns, event.end_ns});
    const std::string text = dump_json(events);
    std::vector<RankTrace> ranks;
    for (int r = 0; r < state_.world().size(); ++r) {
      RankTrace trace{r, {}};
      for (const Json& event : Json::parse(state_.world().broadcast_object(text, {r}))) {
        trace.events.push_back({event[0], event[1], event[2]});
      }
      ranks.push_back(std::move(trace));
    }
    return ranks;
  }

  const BenchOptions& options_;
  const ParallelState& state_;
  LoadedModel loaded_;
  std::optional<BenchMachine> machine_;
  BenchReport report_;
};

}  // namespace

void bench_on_rank(const BenchOptions& options, const ModelPlan& plan, const ParallelState& state) {
  Bench(options, plan, state).run();
}

}  // namespace headway
