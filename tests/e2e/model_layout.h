#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headway/models/causal_lm.h"

namespace headway::testing {

/// Ranks of this launch, from the launcher's variables; 1 without a launcher.
int launched_world_size();

/// Groups with TP over all ranks and attention over `attn_tp`. They live until other sizes are asked for, so tests
/// that follow one another share them.
const ParallelState& parallel_state(int attn_tp);

/// Drops those groups; every rank must, before its process ends.
void drop_parallel_state();

/// A test model on the ranks of this launch.
struct ModelRequest {
  std::string name;
  int attn_tp = 1;
  std::optional<DType> dtype = std::nullopt;
  VocabGroup embedding_group = VocabGroup::tp;
  VocabGroup lm_head_group = VocabGroup::tp;
};
LoadedModel load_test_model(const ModelRequest& request);

}  // namespace headway::testing
