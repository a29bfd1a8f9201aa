#include "e2e/model_layout.h"

#include <memory>

#include "e2e/reference.h"
#include "headway/parallel/launch.h"

namespace headway::testing {
namespace {

std::unique_ptr<ParallelState>& current_state() {
  static std::unique_ptr<ParallelState> state;
  return state;
}

}  // namespace

int launched_world_size() {
  static const int size = resolve_launch_environment().world_size;
  return size;
}

const ParallelState& parallel_state(int attn_tp) {
  auto& state = current_state();
  if (!state || state->layout().attn_tp_size() != attn_tp) {
    state.reset();
    state = ParallelState::create(resolve_launch_environment(), launched_world_size(), attn_tp);
  }
  return *state;
}

void drop_parallel_state() {
  current_state().reset();
}

LoadedModel load_test_model(const ModelRequest& request) {
  const auto folder = test_model(request.name);
  const ModelConfig config = ModelConfig::from_pretrained(folder);
  const ParallelConfig parallel =
      resolve_parallel_config(config, launched_world_size(), launched_world_size(), request.attn_tp,
                              request.embedding_group, request.lm_head_group);
  LoadOptions options;
  options.dtype = request.dtype;
  return load_model(folder, config, parallel, parallel_state(request.attn_tp), options);
}

}  // namespace headway::testing
