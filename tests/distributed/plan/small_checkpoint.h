#pragma once

#include <filesystem>

#include "headway/config/model_config.h"

namespace headway::testing {

/// A Qwen2 shape of two layers with these heads.
ModelConfig small_config(int64_t q_heads, int64_t kv_heads, bool tied);

/// Writes a checkpoint of that shape, in fp32, no two of whose elements near each other are equal.
void write_checkpoint(const std::filesystem::path& folder, const ModelConfig& config);

}  // namespace headway::testing
