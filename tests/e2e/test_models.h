#pragma once

#include <optional>
#include <string>

#include "headway/models/causal_lm.h"

namespace headway::testing {

/// A test model on the ranks of this launch: TP over all of them, attention over `attn_tp`.
struct ModelRequest {
  std::string name;
  int attn_tp = 1;
  std::optional<DType> dtype = std::nullopt;
  VocabGroup embedding_group = VocabGroup::tp;
  VocabGroup lm_head_group = VocabGroup::tp;
  AttnReplicas attn_replicas = AttnReplicas::replicate;
};
LoadedModel load_test_model(const ModelRequest& request);

}  // namespace headway::testing
