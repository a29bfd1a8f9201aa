#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "headway/base/dtype.h"

namespace headway {

/// How position angles are stretched beyond the trained context.
enum class RopeType { standard, linear, dynamic, yarn };

/// Rotary embedding parameters, from `rope_theta` and `rope_scaling` or from `rope_parameters`.
struct RopeConfig {
  RopeType type = RopeType::standard;
  double theta = 10000.0;
  double factor = 1.0;                           ///< linear, dynamic, yarn
  int64_t original_max_position_embeddings = 0;  ///< dynamic, yarn
  double beta_fast = 32.0;                       ///< yarn
  double beta_slow = 1.0;                        ///< yarn
  std::optional<double> attention_factor;        ///< yarn; absent: 0.1 * ln(factor) + 1
  std::optional<double> mscale;                  ///< yarn, with mscale_all_dim
  std::optional<double> mscale_all_dim;
  bool truncate = true;  ///< yarn: round the correction range to whole dimensions
};

/// What Headway reads of a Hugging Face config.json (and generation_config.json), validated.
struct ModelConfig {
  std::string architecture;  ///< first entry of `architectures`
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_layers = 0;
  int64_t total_q_heads = 0;
  int64_t total_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  bool tie_word_embeddings = false;
  RopeConfig rope;
  std::vector<std::optional<int64_t>> sliding_window;  ///< per layer: the window in tokens, or none
  std::optional<DType> dtype;                          ///< `dtype` / `torch_dtype`; absent: that of the stored tensors
  std::vector<int64_t> eos_token_ids;                  ///< union of config.json's and generation_config.json's

  /// Reads config.json of `folder` (or the file itself) and, where present, generation_config.json beside it.
  /// Throws ConfigError or CheckpointError naming the file and the key.
  static ModelConfig from_pretrained(const std::filesystem::path& folder_or_file);
};

}  // namespace headway
