#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headway/config/model_config.h"

namespace headway {

/// Sizes of the TP group and of the attention group.
struct VerifyLayout {
  int64_t tp = 1;
  int64_t attn_tp = 1;
};

/// "all": every legal layout of 2 to `most_ranks` ranks; otherwise those of a list "T:A,T:A". Throws UsageError for one
/// that is not legal, naming the legal sizes, or that takes more ranks than `most_ranks`.
std::vector<VerifyLayout> verify_layouts(const std::string& text, const ModelConfig& model, int64_t most_ranks);

}  // namespace headway
