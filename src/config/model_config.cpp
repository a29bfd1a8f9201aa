#include "headway/config/model_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/agreed.h"
#include "config/attention_window.h"
#include "config/config_object.h"
#include "config/limits.h"
#include "config/model_config_reader.h"
#include "config/rope_config.h"
#include "headway/base/error.h"
#include "headway/base/log.h"

namespace headway {
namespace {

namespace fs = std::filesystem;

fs::path config_file_of(const fs::path& folder_or_file) {
  std::error_code ignored;
  if (!fs::exists(folder_or_file, ignored)) {
    throw CheckpointError(fmt::format("{}: no such file or folder", folder_or_file.string()));
  }
  if (!fs::is_directory(folder_or_file, ignored)) return folder_or_file;
  fs::path file = folder_or_file / "config.json";
  if (!fs::exists(file, ignored)) {
    throw CheckpointError(fmt::format("{}: the folder has no config.json", folder_or_file.string()));
  }
  return file;
}

std::string read_architecture(const ConfigObject& root) {
  const Json* names = root.find("architectures");
  if (names == nullptr && root.text("model_type") == "qwen2") return "Qwen2ForCausalLM";
  if (names == nullptr) root.fail("architectures is absent, and model_type does not say \"qwen2\"");
  if (!names->is_array() || names->empty() || !names->front().is_string()) {
    root.fail_value("architectures", "a list that begins with a name");
  }
  return names->front().get<std::string>();
}

void read_shapes(const ConfigObject& root, ModelConfig& config) {
  config.hidden_size = root.required_integer("hidden_size", kWidthLimits);
  config.intermediate_size = root.required_integer("intermediate_size", kIntermediateLimits);
  config.num_layers = root.required_integer("num_hidden_layers", kLayerLimits);
  config.vocab_size = root.required_integer("vocab_size", kVocabLimits);
  config.max_position_embeddings = root.required_integer("max_position_embeddings", kPositionLimits);
  config.rms_norm_eps = root.required_number("rms_norm_eps", 1e-30, 1.0);
}

int64_t read_head_dim(const ConfigObject& root, const ModelConfig& config) {
  if (const auto stated = root.integer("head_dim", kHeadDimLimits)) return *stated;
  if (config.hidden_size % config.total_q_heads != 0) {
    root.fail(fmt::format("head_dim is absent and hidden_size {} does not divide by num_attention_heads {}",
                          config.hidden_size, config.total_q_heads));
  }
  return config.hidden_size / config.total_q_heads;
}

void read_heads(const ConfigObject& root, ModelConfig& config) {
  config.total_q_heads = root.required_integer("num_attention_heads", kHeadLimits);
  config.total_kv_heads = root.integer("num_key_value_heads", kHeadLimits).value_or(config.total_q_heads);
  if (config.total_q_heads % config.total_kv_heads != 0) {
    root.fail(fmt::format("num_attention_heads {} does not divide by num_key_value_heads {}", config.total_q_heads,
                          config.total_kv_heads));
  }
  config.head_dim = read_head_dim(root, config);
  if (config.head_dim % 2 != 0) {
    root.fail(fmt::format("head_dim is {}; rotary embedding needs an even one", config.head_dim));
  }
  if (!kWidthLimits.contains(config.total_q_heads * config.head_dim)) {
    root.fail(fmt::format("num_attention_heads {} x head_dim {} is more than {}", config.total_q_heads, config.head_dim,
                          kWidthLimits.end - 1));
  }
}

std::optional<DType> read_dtype(const ConfigObject& root) {
  return agreed({{root, "dtype"}, {root, "torch_dtype"}}, [](const ConfigObject& object, std::string_view key) {
    const auto name = object.text(key);
    const auto dtype = name ? dtype_from_config(*name) : std::nullopt;
    if (name && !dtype) object.fail_value(key, "\"float32\", \"bfloat16\" or \"float16\"");
    return dtype;
  });
}

/// Refuses what Headway would otherwise compute differently from what the config says.
void refuse_unsupported(const ConfigObject& root) {
  const std::string activation = root.text("hidden_act").value_or("silu");
  if (activation != "silu") root.fail_value("hidden_act", "\"silu\"");
  if (root.boolean("use_mrope").value_or(false)) root.fail_value("use_mrope", "false");
  if (root.states("quantization_config")) root.fail_value("quantization_config", "null (weights are not quantized)");
}

void check_token_id(const ConfigObject& object, std::string_view key, int64_t id, int64_t vocab_size) {
  if (id < vocab_size) return;
  log(LogLevel::warning,
      fmt::format("{}: {} {} lies outside the vocabulary of {}", object.source(), object.name_of(key), id, vocab_size));
}

/// Adds eos_token_id, one id or a list, to those known so far.
void add_eos_token_ids(const ConfigObject& object, ModelConfig& config) {
  const Json* stated = object.find("eos_token_id");
  if (stated == nullptr) return;
  for (const Json& entry : stated->is_array() ? *stated : Json::array({*stated})) {
    if (!entry.is_number_integer() || entry < kTokenIdLimits.begin || entry >= kTokenIdLimits.end) {
      object.fail_value("eos_token_id", "a token id or a list of token ids");
    }
    const auto id = entry.get<int64_t>();
    check_token_id(object, "eos_token_id", id, config.vocab_size);
    if (std::ranges::find(config.eos_token_ids, id) == config.eos_token_ids.end()) config.eos_token_ids.push_back(id);
  }
}

void read_generation_config(const fs::path& file, ModelConfig& config) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(file, ignored))) return;
  const Json json = read_json_file(file, ConfigObject::kMaxFileBytes);
  add_eos_token_ids(ConfigObject(json, file.string()), config);
}

}  // namespace

ModelConfig read_model_config(const ConfigObject& root) {
  ModelConfig config;
  config.architecture = read_architecture(root);
  refuse_unsupported(root);
  read_shapes(root, config);
  read_heads(root, config);
  config.tie_word_embeddings = root.boolean("tie_word_embeddings").value_or(false);
  config.rope = read_rope_config(root, config.max_position_embeddings);
  config.sliding_window = read_sliding_windows(root, config.num_layers);
  config.dtype = read_dtype(root);
  add_eos_token_ids(root, config);
  return config;
}

ModelConfig ModelConfig::from_pretrained(const fs::path& folder_or_file) {
  const fs::path file = config_file_of(folder_or_file);
  const Json json = read_json_file(file, ConfigObject::kMaxFileBytes);
  ModelConfig config = read_model_config(ConfigObject(json, file.string()));
  read_generation_config(file.parent_path() / "generation_config.json", config);
  return config;
}

}  // namespace headway
