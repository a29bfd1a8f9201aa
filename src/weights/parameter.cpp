#include "headway/weights/parameter.h"

#include <functional>
#include <numeric>

namespace headway {

int64_t Parameter::numel() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace headway
