#include <ATen/ops/randn.h>

#include <algorithm>
#include <chrono>

#include "headway/models/causal_lm.h"
#include "headway/weights/torch_dtype.h"

namespace headway {
namespace {

constexpr int64_t kBlock = int64_t{1} << 20;
constexpr double kDeviation = 0.02;  // what transformers starts weights with

/// Repeats a block of random values: drawing every value of a large model would take longer than measuring it.
void fill(at::Tensor& tensor, const at::Tensor& block) {
  at::Tensor flat = tensor.view({-1});
  for (int64_t begin = 0; begin < flat.numel(); begin += kBlock) {
    const int64_t size = std::min(kBlock, flat.numel() - begin);
    flat.narrow(0, begin, size).copy_(block.narrow(0, 0, size));
  }
}

}  // namespace

LoadedModel random_model(const ModelConfig& config, const ParallelConfig& parallel, const ParallelState& state,
                         const LoadOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  LoadedModel loaded{build_model(config, parallel, state), {}, 0};
  const DType dtype = options.dtype.value_or(config.dtype.value_or(DType::F32));
  allocate_parameters(*loaded.model, torch_dtype(dtype), options.device);
  const at::Tensor block = at::randn({kBlock}, at::TensorOptions(at::kFloat)).mul_(kDeviation);
  for (const NamedParameter& named : loaded.model->named_parameters()) {
    if (named.full_name.ends_with("norm.weight")) {
      named.parameter->tensor.fill_(1);
    } else {
      fill(named.parameter->tensor, block);
    }
  }
  if (options.quantization == Quantization::int8) quantize_to_int8(*loaded.model);
  loaded.load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return loaded;
}

}  // namespace headway
