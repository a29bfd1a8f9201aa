#include "engine/finite_watch.h"

#include <ATen/ops/isfinite.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace headway {

bool FiniteWatch::asked_for() {
  const char* value = std::getenv("HEADWAY_CHECK_FINITE");
  return value != nullptr && std::string_view(value) == "1";
}

FiniteWatch::FiniteWatch(CausalLM& model) : model_(model) {
  model.observe_residual(
      [this](ResidualPoint point, int64_t layer, const at::Tensor& stream) { look(point, layer, stream); });
}

FiniteWatch::~FiniteWatch() {
  model_.observe_residual({});
}

void FiniteWatch::look(ResidualPoint point, int64_t layer, const at::Tensor& stream) {
  first_bad_.resize(static_cast<size_t>(stream.size(0)));
  const at::Tensor finite = at::isfinite(stream).all(1).to(at::kCPU);
  const bool* row_is_finite = finite.const_data_ptr<bool>();
  for (size_t row = 0; row < first_bad_.size(); ++row) {
    if (!row_is_finite[row] && !first_bad_[row]) first_bad_[row] = Place{point, layer};
  }
}

std::string FiniteWatch::verdict(int64_t row) const {
  const auto index = static_cast<size_t>(row);
  if (index >= first_bad_.size()) return "";  // another observer of the model took this one's place
  if (!first_bad_[index]) return "; all values before the LM head are finite";
  const auto& [point, layer] = *first_bad_[index];
  if (point == ResidualPoint::embedding) return "; the first come from the embedding";
  return fmt::format("; the first come from the {} of layer {}",
                     point == ResidualPoint::attention ? "attention" : "MLP", layer);
}

}  // namespace headway
