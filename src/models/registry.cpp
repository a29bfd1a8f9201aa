#include "models/registry.h"

#include <fmt/format.h>

#include "headway/models/qwen2.h"

namespace headway {
namespace {

template <typename Model>
std::unique_ptr<CausalLM> build(const ModelConfig& config, const ParallelConfig& parallel, const ParallelState& state) {
  return std::make_unique<Model>(config, parallel, state);
}

}  // namespace

const std::vector<RegisteredModel>& registered_models() {
  static const std::vector<RegisteredModel> models{{"Qwen2ForCausalLM", build<Qwen2ForCausalLM>},
                                                   // a checkpoint of the base model alone
                                                   {"Qwen2Model", build<Qwen2ForCausalLM>}};
  return models;
}

std::unique_ptr<CausalLM> build_model(const ModelConfig& config, const ParallelConfig& parallel,
                                      const ParallelState& state) {
  std::string known;
  for (const RegisteredModel& model : registered_models()) {
    if (model.architecture == config.architecture) return model.build(config, parallel, state);
    known += (known.empty() ? "" : ", ") + model.architecture;
  }
  throw ConfigError(fmt::format("architecture \"{}\" is not supported; known: {}", config.architecture, known));
}

}  // namespace headway
