#include "kernels/linear_reach.h"

#include <ATen/ops/ones.h>

#include <chrono>
#include <map>
#include <tuple>

#include "kernels/ops.h"

namespace headway::kernels {

void LinearReach::Step::run() const {
  scales.defined() ? linear(input, Int8Matrix{weight, scales}) : linear(input, weight);
}

double LinearReach::Step::best_seconds(LinearWay forced_way) const {
  const ForcedLinearWay forced(forced_way);
  return kernels::best_seconds([this] { run(); });
}

LinearReach::LinearReach(std::vector<Use> uses) {
  std::map<std::tuple<int64_t, int64_t, int64_t>, Step> by_shape;
  for (const Use& use : uses) {
    Step& known = by_shape[{use.tokens, use.weight.size(0), use.weight.size(1)}];
    if (!known.input.defined()) {
      const at::Tensor input = at::ones({use.tokens, use.weight.size(1)}, use.weight.options().dtype(use.dtype));
      known = {input, use.weight, use.scales};
      const double own = known.best_seconds(LinearWay::own);
      known.way = known.best_seconds(LinearWay::gemm) < own ? LinearWay::gemm : LinearWay::own;
    }
    steps_.push_back({known.input, use.weight, use.scales, known.way});
  }
}

double LinearReach::measure() const {
  double seconds = 0;
  for (const Step& step : steps_) {
    const ForcedLinearWay forced(step.way);
    const auto start = std::chrono::steady_clock::now();
    step.run();
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
