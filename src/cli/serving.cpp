#include "cli/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/errors.h"
#include "cli/prompt.h"

namespace headway {
namespace {

/// The folder's own name, also where its path ends in a slash.
std::string folder_name(const std::filesystem::path& folder) {
  const std::filesystem::path whole = std::filesystem::absolute(folder).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

}  // namespace

void add_serving_options(CLI::App& app, ServingOptions& options) {
  app.add_option("--served-model-name", options.served_model_name, "What requests call the model; default: its folder");
  app.add_option("--max-num-seqs", options.max_num_seqs, "Sequences that are computed side by side")
      ->capture_default_str();
  app.add_flag("--no-prefix-caching", options.no_prefix_caching, "Compute every prompt anew");
}

ServedModel read_served_model(const ModelPlan& plan, const ServingOptions& options) {
  ServedModel served;
  served.names = {options.served_model_name.value_or(folder_name(plan.folder))};
  if (!options.served_model_name) served.names.push_back(plan.folder.string());
  served.tokenizer = find_tokenizer(plan.folder);
  if (served.tokenizer) served.chat_template = ChatTemplate::from_pretrained(plan.folder);
  served.vocab_size = plan.config.vocab_size;
  served.max_model_len = plan.max_model_len;
  return served;
}

EngineOptions serving_engine_options(const ModelOptions& model, const ModelPlan& plan, const ServingOptions& options,
                                     const ServedModel& served) {
  if (options.max_num_seqs < 1) {
    throw UsageError(fmt::format("--max-num-seqs is {}; it must be at least 1", options.max_num_seqs));
  }
  EngineOptions engine;
  engine.max_model_len = plan.max_model_len;
  engine.kv_blocks = model.kv_blocks;
  engine.max_num_seqs = options.max_num_seqs;
  engine.max_batch_tokens = std::max(engine.max_batch_tokens, options.max_num_seqs);
  engine.prefix_caching = !options.no_prefix_caching;
  const auto eos = served.tokenizer ? served.tokenizer->eos_token_id() : std::nullopt;
  if (eos) engine.eos_token_ids = {*eos};
  return engine;
}

}  // namespace headway
