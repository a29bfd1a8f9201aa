#include "distributed/layers/layer_support.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include "distributed/support/parallel_test.h"
#include "headway/weights/weight_loader.h"

namespace headway::testing {

at::Tensor on_device(const at::Tensor& tensor) {
  return tensor.to(device());
}

at::Tensor values(const std::vector<float>& elements) {
  return on_device(at::tensor(elements));
}

void allocate(Module& module) {
  allocate_parameters(module, at::kFloat, device());
}

at::Tensor sequence_matrix(int64_t rows, int64_t columns, double offset) {
  const at::Tensor i = at::arange(rows, at::kFloat).unsqueeze(1);
  const at::Tensor j = at::arange(columns, at::kFloat).unsqueeze(0);
  return on_device(i * 1000 + j + offset);
}

at::Tensor sequence_vector(int64_t size, double offset) {
  return on_device(at::arange(size, at::kFloat) + offset);
}

at::Tensor random_tensor(const std::vector<int64_t>& shape, uint64_t seed) {
  return on_device(at::randn(shape, at::detail::createCPUGenerator(seed), at::TensorOptions(at::kFloat)));
}

at::Tensor random_matrix(int64_t rows, int64_t columns, uint64_t seed) {
  return random_tensor({rows, columns}, seed);
}

void fill_from_full_tensors(Module& module, double scale) {
  allocate(module);
  for (const auto& [name, parameter] : module.named_parameters()) {
    for (const TensorSlice& slice : parameter->slices) {
      const uint64_t seed = std::hash<std::string>{}(name + "/" + slice.section);
      load_section(*parameter, random_tensor(slice.total_shape, seed) * scale, slice.section);
    }
  }
}

}  // namespace headway::testing
