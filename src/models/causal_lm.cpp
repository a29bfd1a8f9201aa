#include "headway/models/causal_lm.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <chrono>

#include "headway/weights/torch_dtype.h"
#include "headway/weights/weight_arena.h"

namespace headway {
namespace {

/// What was asked for, else the config's dtype, else that of the stored embedding table.
DType wanted_dtype(const LoadOptions& options, const ModelConfig& config, const CheckpointIndex& index) {
  if (options.dtype) return *options.dtype;
  if (config.dtype) return *config.dtype;
  for (const auto& [name, location] : index.tensors()) {
    if (name.ends_with("embed_tokens.weight")) return location.info.dtype;
  }
  throw CheckpointError(fmt::format("{}: no embed_tokens.weight", index.folder().string()));
}

c10::ScalarType compute_dtype(const LoadOptions& options, const ModelConfig& config, const CheckpointIndex& index) {
  const DType dtype = wanted_dtype(options, config, index);
  if (dtype != DType::F32 && dtype != DType::BF16 && dtype != DType::F16) {
    throw ConfigError(fmt::format("{}: the model's dtype is {}; F32, BF16 and F16 can be computed in",
                                  index.folder().string(), name_of(dtype)));
  }
  return torch_dtype(dtype);
}

}  // namespace

std::vector<KVCacheView> CausalLM::allocate_kv_cache(int64_t blocks, int64_t block_size) const {
  const std::vector<int64_t> shape{blocks, block_size, heads_.local_kv_heads(), config_.head_dim};
  std::shared_ptr<WeightArena> arena;  // on the CPU: zeroes that take no memory before they are written
  if (device().is_cpu()) arena = WeightArena::create(2 * config_.num_layers * WeightArena::footprint(shape, dtype()));
  const auto half = [&] {
    return arena ? arena->allocate(shape, dtype()) : at::zeros(shape, at::TensorOptions(dtype()).device(device()));
  };
  std::vector<KVCacheView> caches;
  for (int64_t i = 0; i < config_.num_layers; ++i) caches.push_back({half(), half()});
  return caches;
}

at::Tensor CausalLM::any_weight() const {
  for (const NamedParameter& named : named_parameters()) {
    if (!named.parameter->scales.defined()) return named.parameter->tensor;
  }
  throw Error("the model has no weight but those in int8");
}

Quantization quantization_from_name(const std::string& name) {
  if (name == "none") return Quantization::none;
  if (name == "int8") return Quantization::int8;
  throw ConfigError(fmt::format("quantization \"{}\" is not one of none, int8", name));
}

LoadedModel load_model(const std::filesystem::path& folder, const ModelConfig& config, const ParallelConfig& parallel,
                       const ParallelState& state, const LoadOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  LoadedModel loaded{build_model(config, parallel, state), {}, 0};
  const CheckpointIndex index(folder);
  allocate_parameters(*loaded.model, compute_dtype(options, config, index), options.device);
  const WeightLoader loader(index, loaded.model->checkpoint_names());
  loaded.report = loader.load(loaded.model->named_parameters(), options.progress);
  if (options.quantization == Quantization::int8) quantize_to_int8(*loaded.model);
  loaded.load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return loaded;
}

}  // namespace headway
