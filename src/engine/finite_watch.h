#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headway/models/causal_lm.h"

namespace headway {

/// Finds, for each token of a step, the first point of the residual stream with a value that is no number. Looking
/// costs some passes over the stream at each point, so it is done only when asked: HEADWAY_CHECK_FINITE=1.
class FiniteWatch {
 public:
  static bool asked_for();

  /// Observes `model`, which must outlive the watch.
  explicit FiniteWatch(CausalLM& model);
  ~FiniteWatch();
  FiniteWatch(const FiniteWatch&) = delete;
  FiniteWatch& operator=(const FiniteWatch&) = delete;

  void begin_step() { first_bad_.clear(); }

  /// "; the first come from the MLP of layer 3", or that all was finite before the LM head. `row` is the token's in the
  /// step.
  std::string verdict(int64_t row) const;

 private:
  struct Place {
    ResidualPoint point;
    int64_t layer;
  };
  void look(ResidualPoint point, int64_t layer, const at::Tensor& stream);

  CausalLM& model_;
  std::vector<std::optional<Place>> first_bad_;  ///< by row
};

}  // namespace headway
