#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headway/config/model_config.h"
#include "headway/config/parallel_config.h"

namespace headway {

/// What another engine says to a layout.
struct PeerVerdict {
  std::string_view engine;
  bool served = false;
  std::string reason;  ///< why not, or what differs
};

/// Verdicts of vLLM and SGLang by their published rules: query heads, MLP columns and the vocabulary padded to a
/// multiple of 64 divide by the size; KV heads divide by it or it by them. vLLM has one size for the whole
/// transformer; SGLang can give attention a size of its own where replicas own sequences.
std::vector<PeerVerdict> peer_verdicts(const ModelConfig& model, const ParallelConfig& parallel);

}  // namespace headway
