#include "engine/linear_choice.h"

#include <optional>
#include <string>

#include "headway/kernels/linear_handover.h"

namespace headway {
namespace {

constexpr GroupRank kFirst{0};

/// The largest matrix of the layers in the dtype of the model; undefined if there is none.
at::Tensor largest_linear(const CausalLM& model) {
  at::Tensor largest;
  for (const NamedParameter& named : model.named_parameters()) {
    const at::Tensor& tensor = named.parameter->tensor;
    if (!named.full_name.ends_with("_proj.weight") || tensor.scalar_type() != at::kBFloat16) continue;
    if (!largest.defined() || tensor.numel() > largest.numel()) largest = tensor;
  }
  return largest;
}

/// Rank 0's choice: measured when the first model comes that can be measured with.
int64_t bf16_tokens(const CausalLM& model) {
  static std::optional<int64_t> measured;
  const at::Tensor weight = largest_linear(model);
  if (!measured && weight.defined() && weight.numel() > 0) {
    measured = kernels::measure_linear_handover(weight).bf16_tokens;
  }
  return measured.value_or(kernels::linear_handover().bf16_tokens);
}

}  // namespace

void agree_on_linear_handover(const CausalLM& model, const ParallelState& state) {
  if (!model.device().is_cpu() || model.dtype() != at::kBFloat16) return;
  const bool first = state.world().is_first();
  const std::string text = first ? std::to_string(bf16_tokens(model)) : std::string();
  kernels::LinearHandover handover = kernels::linear_handover();
  handover.bf16_tokens = std::stoll(state.world().broadcast_object(text, kFirst));
  kernels::set_linear_handover(handover);
}

}  // namespace headway
