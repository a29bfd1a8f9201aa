#include "headway/weights/parameter.h"

#include <functional>
#include <numeric>

namespace headway {

int64_t Parameter::numel() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

int64_t Parameter::nbytes() const {
  return static_cast<int64_t>(tensor.nbytes() + (scales.defined() ? scales.nbytes() : 0));
}

}  // namespace headway
