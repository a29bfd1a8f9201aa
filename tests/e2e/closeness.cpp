#include "e2e/closeness.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace headway::testing {

::testing::AssertionResult close(const at::Tensor& actual, const at::Tensor& expected, double bound) {
  if (actual.sizes() != expected.sizes()) {
    return ::testing::AssertionFailure() << fmt::format("shape {} where {} is expected", actual.sizes().vec(),
                                                        expected.sizes().vec());
  }
  const at::Tensor difference = actual.sub(expected).abs().flatten();
  const auto worst = difference.argmax().item<int64_t>();
  const auto distance = difference[worst].item<double>();
  if (distance <= bound) return ::testing::AssertionSuccess();  // false for NaN
  return ::testing::AssertionFailure() << fmt::format(
             "element {} of {}: {} where {} is expected, {} apart, the bound is {}", worst, actual.sizes().vec(),
             actual.flatten()[worst].item<double>(), expected.flatten()[worst].item<double>(), distance, bound);
}

}  // namespace headway::testing
