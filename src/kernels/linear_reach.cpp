#include "kernels/linear_reach.h"

#include <ATen/ops/ones.h>

#include <chrono>
#include <map>
#include <tuple>

#include "kernels/ops.h"

namespace headway::kernels {
namespace {

double seconds_of(LinearWay way, const at::Tensor& input, const at::Tensor& weight) {
  const ForcedLinearWay forced(way);
  return best_seconds([&] { linear(input, weight); });
}

}  // namespace

LinearReach::LinearReach(std::vector<Use> uses) {
  std::map<std::tuple<int64_t, int64_t, int64_t>, Step> by_shape;
  for (const Use& use : uses) {
    Step& known = by_shape[{use.tokens, use.weight.size(0), use.weight.size(1)}];
    if (!known.input.defined()) {
      known.input = at::ones({use.tokens, use.weight.size(1)}, use.weight.options());
      const double own = seconds_of(LinearWay::own, known.input, use.weight);
      known.way = seconds_of(LinearWay::gemm, known.input, use.weight) < own ? LinearWay::gemm : LinearWay::own;
    }
    steps_.push_back({known.input, use.weight, known.way});
  }
}

double LinearReach::measure() const {
  double seconds = 0;
  for (const Step& step : steps_) {
    const ForcedLinearWay forced(step.way);
    const auto start = std::chrono::steady_clock::now();
    linear(step.input, step.weight);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return seconds;
}

double LinearReach::operations() const {
  double operations = 0;
  for (const Step& step : steps_) {
    operations += 2.0 * static_cast<double>(step.input.size(0)) * static_cast<double>(step.weight.numel());
  }
  return operations;
}

}  // namespace headway::kernels
