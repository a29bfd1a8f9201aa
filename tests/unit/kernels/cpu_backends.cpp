#include "unit/kernels/backend.h"

namespace headway::kernels {

std::vector<Backend> backends() {
  return {{.name = "cpu", .device = at::kCPU}, {.name = "aten", .device = at::kCPU, .aten_operators = true}};
}

}  // namespace headway::kernels
