#include "e2e/test_models.h"

#include "distributed/support/parallel_test.h"
#include "e2e/reference.h"

namespace headway::testing {

LoadedModel load_test_model(const ModelRequest& request) {
  const auto folder = test_model(request.name);
  const ModelConfig config = ModelConfig::from_pretrained(folder);
  const ParallelConfig parallel =
      resolve_parallel_config(config, world_size(), world_size(), request.attn_tp, request.embedding_group,
                              request.lm_head_group, request.attn_replicas);
  LoadOptions options;
  options.dtype = request.dtype;
  options.device = device();
  return load_model(folder, config, parallel, parallel_state(request.attn_tp), options);
}

}  // namespace headway::testing
