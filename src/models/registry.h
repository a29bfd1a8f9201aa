#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headway/models/causal_lm.h"

namespace headway {

using ModelFactory = std::unique_ptr<CausalLM> (*)(const ModelConfig&, const ParallelConfig&, const ParallelState&);

/// An architecture as config.json names it, and what builds it.
struct RegisteredModel {
  std::string architecture;
  ModelFactory build;
};

const std::vector<RegisteredModel>& registered_models();

}  // namespace headway
