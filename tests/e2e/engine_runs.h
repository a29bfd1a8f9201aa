#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headway/base/dtype.h"
#include "headway/engine/llm_engine.h"

namespace headway::testing {

struct EngineRequest {
  std::vector<int32_t> tokens;
  SamplingParams params;
};

struct EngineResult {
  std::vector<int32_t> tokens;
  FinishReason reason = FinishReason::length;
  std::string error;
  friend bool operator==(const EngineResult&, const EngineResult&) = default;
};

/// What rank 0 gets for requests that run side by side on a test model, with attention over all ranks of the launch;
/// the other ranks follow and get nothing.
std::vector<EngineResult> run_engine(const std::string& model, std::optional<DType> dtype,
                                     const std::vector<EngineRequest>& requests);

}  // namespace headway::testing
