#include "distributed/layers/layer_support.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>

#include "headway/weights/weight_loader.h"

namespace headway::testing {

at::Tensor sequence_matrix(int64_t rows, int64_t columns, double offset) {
  const at::Tensor i = at::arange(rows, at::kFloat).unsqueeze(1);
  const at::Tensor j = at::arange(columns, at::kFloat).unsqueeze(0);
  return i * 1000 + j + offset;
}

at::Tensor sequence_vector(int64_t size, double offset) {
  return at::arange(size, at::kFloat) + offset;
}

at::Tensor random_tensor(const std::vector<int64_t>& shape, uint64_t seed) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::TensorOptions(at::kFloat));
}

at::Tensor random_matrix(int64_t rows, int64_t columns, uint64_t seed) {
  return random_tensor({rows, columns}, seed);
}

void fill_from_full_tensors(Module& module, double scale) {
  allocate_parameters(module, at::kFloat);
  for (const auto& [name, parameter] : module.named_parameters()) {
    for (const TensorSlice& slice : parameter->slices) {
      const uint64_t seed = std::hash<std::string>{}(name + "/" + slice.section);
      load_section(*parameter, random_tensor(slice.total_shape, seed) * scale, slice.section);
    }
  }
}

}  // namespace headway::testing
