#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "headway/base/dtype.h"
#include "headway/config/model_config.h"
#include "headway/config/parallel_config.h"
#include "headway/models/causal_lm.h"
#include "headway/parallel/launch.h"

namespace headway {

/// The options of every command that runs a model.
struct ModelOptions {
  std::filesystem::path model;
  std::optional<int64_t> tp;
  std::optional<int64_t> attn_tp;
  std::string embedding_group = "tp";
  std::string lm_head_group = "tp";
  std::string attn_replicas = "replicate";
  std::string dtype = "auto";
  std::string device = "auto";
  std::string quantize = "none";
  std::optional<int64_t> max_model_len;
  std::optional<int64_t> kv_blocks;
  std::optional<int64_t> threads;
  double collective_timeout = 60;
};

void add_model_options(CLI::App& app, ModelOptions& options);

/// Those of them that say nothing of the sizes of groups, of sequences and of the cache.
void add_execution_options(CLI::App& app, ModelOptions& options);

/// What --dtype means; nothing for "auto". Throws UsageError for a dtype that is not served.
std::optional<DType> dtype_of_option(const std::string& name);

/// What the options mean for this model and this place among the ranks, checked without reading a weight or meeting
/// another rank.
struct ModelPlan {
  std::filesystem::path folder;
  LaunchEnvironment launch;
  ModelConfig config;
  ParallelConfig parallel;
  std::optional<DType> dtype;  ///< absent: the checkpoint's
  Quantization quantization = Quantization::none;
  int64_t max_model_len = 0;

  bool needs_launcher() const { return launch.source == "single" && parallel.tp > 1; }
};

/// Throws UsageError naming the value that cannot be served, CheckpointError for an unreadable folder.
ModelPlan plan_model(const ModelOptions& options);

}  // namespace headway
