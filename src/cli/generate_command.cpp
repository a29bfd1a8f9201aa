#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <memory>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/generation.h"
#include "cli/launcher.h"
#include "cli/layout_table.h"
#include "cli/model_options.h"
#include "cli/prompt.h"
#include "cli/rank_report.h"
#include "cli/session.h"
#include "cli/terminal.h"
#include "headway/engine/sequence_length.h"
#include "headway/kernels/threads.h"
#include "headway/plan/plan.h"

namespace headway {
namespace {

constexpr int64_t kDefaultMaxTokens = 128;

struct GenerateOptions {
  ModelOptions model;
  PromptOptions prompt;
  TextParams text;
  std::optional<int64_t> max_tokens;
  bool json = false;
};

/// A prompt as rank 0 has it; the other ranks know how long the sequence may become.
struct Prompt {
  std::optional<Tokenizer> tokenizer;
  std::vector<int32_t> token_ids;
  int64_t max_tokens = 0;       ///< new ones
  int64_t sequence_tokens = 0;  ///< the prompt and the new ones
};

Prompt prepare_prompt(const GenerateOptions& options, const ModelPlan& plan, const GroupCoordinator& world) {
  Prompt prompt;
  prompt.sequence_tokens = decide_on_first_rank(world, [&] {
    prompt.tokenizer = find_tokenizer(plan.folder);
    prompt.token_ids = prompt_token_ids(options.prompt, plan.folder, prompt.tokenizer, plan.config.vocab_size);
    const auto tokens = static_cast<int64_t>(prompt.token_ids.size());
    as_usage([&] { check_sequence_length(tokens, options.max_tokens.value_or(1), plan.max_model_len); });
    prompt.max_tokens = options.max_tokens.value_or(std::min(kDefaultMaxTokens, plan.max_model_len - tokens));
    return tokens + prompt.max_tokens;
  });
  return prompt;
}

/// One sequence at a time, and unless told otherwise a cache of just its size.
EngineOptions engine_options(const GenerateOptions& options, const Prompt& prompt) {
  EngineOptions engine;
  engine.max_num_seqs = 1;
  engine.max_model_len = prompt.sequence_tokens;
  engine.kv_blocks = options.model.kv_blocks;
  const auto eos = prompt.tokenizer ? prompt.tokenizer->eos_token_id() : std::nullopt;
  if (eos) engine.eos_token_ids = {*eos};
  return engine;
}

Json ranks_json(const std::vector<RankReport>& reports) {
  Json ranks = Json::array();
  for (const RankReport& report : reports) {
    ranks.push_back({{"rank", report.rank.value},
                     {"q_heads", {report.q_heads.begin, report.q_heads.end}},
                     {"kv_heads", {report.kv_heads.begin, report.kv_heads.end}},
                     {"parameter_bytes", report.parameter_bytes},
                     {"bytes_read", report.bytes_read},
                     {"peak_rss_bytes", report.peak_rss_bytes}});
  }
  return ranks;
}

Json generation_json(const Generation& generation, bool has_text, double load_seconds,
                     const std::vector<RankReport>& reports) {
  return {{"token_ids", generation.token_ids},
          {"text", has_text ? Json(generation.text) : Json()},
          {"finish_reason", name_of(generation.finish_reason)},
          {"prompt_tokens", generation.prompt_tokens},
          {"completion_tokens", generation.token_ids.size()},
          {"prefill_tokens_per_s", generation.prefill_tokens_per_s()},
          {"decode_tokens_per_s", generation.decode_tokens_per_s()},
          {"load_seconds", load_seconds},
          {"ranks", ranks_json(reports)}};
}

std::string summary_line(const Generation& generation) {
  return fmt::format("prompt: {} tokens at {:.1f} tokens/s; text: {} tokens at {:.1f} tokens/s; ended by {}",
                     generation.prompt_tokens, generation.prefill_tokens_per_s(), generation.token_ids.size(),
                     generation.decode_tokens_per_s(), name_of(generation.finish_reason));
}

/// Rank 0 generates and the others follow.
Generation generate_together(CausalLM& model, const ParallelState& state, const EngineOptions& options,
                             const Prompt& prompt, const TextParams& text, bool silent) {
  LLMEngine engine(model, state, options);
  kernels::pin_calling_thread();
  if (engine.is_driver()) return generate(engine, prompt.tokenizer, prompt.token_ids, text, silent);
  engine.follow();
  return {};
}

void generate_on_rank(const GenerateOptions& options, const ModelPlan& plan, const ParallelState& state) {
  const bool first = state.world().is_first();
  const Prompt prompt = prepare_prompt(options, plan, state.world());
  TextParams text = options.text;
  text.sampling.max_tokens = prompt.max_tokens;
  const LoadedModel loaded = load_with_progress(plan, state);
  const auto holdings = gather_reports(report_of_this_rank(loaded, state), state);
  if (first) {
    const Plan layout = make_plan(plan.config, plan.parallel, planned_dtype(plan.config, plan.dtype));
    write_text(STDERR_FILENO, layout_table(layout, holdings, colours_on(STDERR_FILENO)));
  }
  const Generation generation =
      generate_together(*loaded.model, state, engine_options(options, prompt), prompt, text, options.json);
  const auto reports = gather_reports(report_of_this_rank(loaded, state), state);
  if (!first) return;
  write_line(STDERR_FILENO, summary_line(generation));
  if (!options.json) return;
  const bool has_text = prompt.tokenizer.has_value();
  write_line(STDOUT_FILENO, dump_json(generation_json(generation, has_text, loaded.load_seconds, reports)));
}

void run_generate(const GenerateOptions& options) {
  const ModelPlan plan = plan_model(options.model);
  as_usage([&] { options.text.validate(); });
  if (plan.needs_launcher()) throw CLI::RuntimeError(run_ranks(static_cast<int>(plan.parallel.tp)));
  run_on_ranks(options.model, plan, [&](const ParallelState& state) { generate_on_rank(options, plan, state); });
}

void add_sampling_options(CLI::App& app, TextParams& text) {
  SamplingParams& sampling = text.sampling;
  app.add_option("--temperature", sampling.temperature, "0 is greedy")->capture_default_str();
  app.add_option("--top-p", sampling.top_p, "Only the likeliest tokens that have this probability together")
      ->capture_default_str();
  app.add_option("--top-k", sampling.top_k, "Only so many of the likeliest tokens; 0 or -1: off")
      ->capture_default_str();
  app.add_option("--min-p", sampling.min_p, "Only tokens of at least this part of the largest probability")
      ->capture_default_str();
  app.add_option("--repetition-penalty", sampling.repetition_penalty, "Above 1: fewer tokens of prompt and text")
      ->capture_default_str();
  app.add_option("--presence-penalty", sampling.presence_penalty, "Above 0: fewer tokens of the text")
      ->capture_default_str();
  app.add_option("--frequency-penalty", sampling.frequency_penalty, "The same for each time that a token occurred")
      ->capture_default_str();
  app.add_option("--seed", sampling.seed, "Makes sampling repeatable");
  app.add_option("--stop", text.stop, "Text that ends the text; may be given several times")->expected(1);
  app.add_option("--min-tokens", sampling.min_tokens, "New tokens before any that would end the text")
      ->capture_default_str();
  app.add_flag("--ignore-eos", sampling.ignore_eos, "Go on after an end-of-sequence token");
}

}  // namespace

void add_generate_command(CLI::App& app) {
  auto options = std::make_shared<GenerateOptions>();
  auto* command = app.add_subcommand("generate", "Continue a prompt and print the text");
  add_model_options(*command, options->model);
  add_prompt_options(*command, options->prompt);
  add_sampling_options(*command, options->text);
  command->add_option("--max-tokens", options->max_tokens, "New tokens at most; default: 128, or what has room");
  command->add_flag("--json", options->json, "Print one JSON object instead of the text");
  command->callback([options] {
    if (options->max_tokens) options->text.sampling.max_tokens = *options->max_tokens;
    run_generate(*options);
  });
}

}  // namespace headway
