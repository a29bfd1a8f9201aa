#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/model_options.h"
#include "headway/engine/llm_engine.h"
#include "server/served_model.h"

namespace headway {

/// The options of commands that serve many requests, beside those of the model.
struct ServingOptions {
  std::optional<std::string> served_model_name;
  int64_t max_num_seqs = 64;
  bool no_prefix_caching = false;
};

void add_serving_options(CLI::App& app, ServingOptions& options);

/// What requests are read against: names, tokenizer, chat template, sizes.
ServedModel read_served_model(const ModelPlan& plan, const ServingOptions& options);

EngineOptions serving_engine_options(const ModelOptions& model, const ModelPlan& plan, const ServingOptions& options,
                                     const ServedModel& served);

}  // namespace headway
