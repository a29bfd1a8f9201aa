#include "cli/model_options.h"

#include <fmt/format.h>

#include "cli/errors.h"
#include "headway/engine/sequence_length.h"

namespace headway {
namespace {

void require_at_least(int64_t least, const char* option, std::optional<int64_t> value) {
  if (value && *value < least) throw UsageError(fmt::format("{} is {}; it must be at least {}", option, *value, least));
}

void check_ranges(const ModelOptions& options) {
  require_at_least(1, "--tp", options.tp);
  require_at_least(1, "--attn-tp", options.attn_tp);
  require_at_least(1, "--kv-blocks", options.kv_blocks);
  require_at_least(1, "--threads", options.threads);
  if (!(options.collective_timeout > 0 && options.collective_timeout <= 86400)) {
    throw UsageError(fmt::format("--collective-timeout is {}; it must be above 0 and at most 86400 seconds",
                                 options.collective_timeout));
  }
  if (options.device != "auto" && options.device != "cpu" && options.device != "cuda") {
    throw UsageError(fmt::format("--device \"{}\" is not one of auto, cpu, cuda", options.device));
  }
}

/// Without a launcher the world is what --tp asks for, as it is about to be started.
int64_t world_size(const LaunchEnvironment& launch, std::optional<int64_t> tp) {
  if (launch.source == "single") return tp.value_or(1);
  if (tp && *tp != launch.world_size) {
    throw UsageError(fmt::format("--tp is {}, but {} started {} ranks; a world larger than its TP group is not served",
                                 *tp, launch.source, launch.world_size));
  }
  return launch.world_size;
}

ParallelConfig resolve_parallel(const ModelOptions& options, const ModelConfig& config, int64_t world) {
  return as_usage([&] {
    return resolve_parallel_config(
        config, world, options.tp, options.attn_tp, vocab_group_from_name(options.embedding_group),
        vocab_group_from_name(options.lm_head_group), attn_replicas_from_name(options.attn_replicas));
  });
}

}  // namespace

void add_execution_options(CLI::App& app, ModelOptions& options) {
  app.add_option("--model", options.model, "Folder with config.json, tokenizer.json and safetensors files")->required();
  app.add_option("--embedding-group", options.embedding_group, "Group that shards the embedding: tp, lm_head_tp, none")
      ->capture_default_str();
  app.add_option("--lm-head-group", options.lm_head_group, "Group that shards the LM head: tp, lm_head_tp, none")
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "auto (the checkpoint's), fp32, bf16, fp16")->capture_default_str();
  app.add_option("--device", options.device, "auto (cuda where there is one), cpu, cuda")->capture_default_str();
  app.add_option("--quantize", options.quantize, "Hold linears, embedding and LM head so: none, int8 (on the CPU)")
      ->capture_default_str();
  app.add_option("--threads", options.threads,
                 "Threads of each rank; default: OMP_NUM_THREADS, else its share of the cores");
  app.add_option("--collective-timeout", options.collective_timeout, "Seconds until a rank gives up on the others")
      ->capture_default_str();
}

void add_model_options(CLI::App& app, ModelOptions& options) {
  add_execution_options(app, options);
  app.add_option("--tp", options.tp, "Ranks of the tensor-parallel group; default: those of the launcher, else 1");
  app.add_option("--attn-tp", options.attn_tp, "Ranks of the attention group; default: the largest legal size");
  app.add_option("--attn-replicas", options.attn_replicas,
                 "What the tp / attn-tp copies of attention do: replicate, or dp, which own sequences")
      ->capture_default_str();
  app.add_option("--max-model-len", options.max_model_len, "Tokens of a sequence; default: what the model allows");
  app.add_option("--kv-blocks", options.kv_blocks, "Blocks of the KV cache; default: as many as the work needs");
}

std::optional<DType> dtype_of_option(const std::string& name) {
  if (name == "auto") return std::nullopt;
  const auto dtype = dtype_from_config(name);
  if (!dtype || (*dtype != DType::F32 && *dtype != DType::BF16 && *dtype != DType::F16)) {
    throw UsageError(fmt::format("--dtype \"{}\" is not one of auto, fp32, bf16, fp16", name));
  }
  return dtype;
}

ModelPlan plan_model(const ModelOptions& options) {
  check_ranges(options);
  ModelPlan plan;
  plan.folder = options.model;
  plan.dtype = dtype_of_option(options.dtype);
  plan.quantization = as_usage([&] { return quantization_from_name(options.quantize); });
  plan.launch = resolve_launch_environment();
  plan.config = ModelConfig::from_pretrained(options.model);
  plan.parallel = resolve_parallel(options, plan.config, world_size(plan.launch, options.tp));
  plan.max_model_len = as_usage([&] { return resolve_max_model_len(plan.config, options.max_model_len); });
  return plan;
}

}  // namespace headway
