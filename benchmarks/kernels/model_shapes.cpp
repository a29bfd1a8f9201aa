#include "kernels/model_shapes.h"

#include <ATen/ops/randn.h>

#include "headway/weights/weight_arena.h"

namespace headway::benchmarks {
namespace {

constexpr int64_t hidden = 896;
constexpr int64_t intermediate = 4864;
constexpr int64_t vocabulary = 151936;

std::vector<std::vector<int64_t>> linear_shapes() {
  std::vector<std::vector<int64_t>> shapes;
  for (int64_t layer = 0; layer < layers; ++layer) {
    shapes.push_back({(q_heads + 2 * kv_heads) * head_dim, hidden});
    shapes.push_back({hidden, q_heads * head_dim});
    shapes.push_back({2 * intermediate, hidden});
    shapes.push_back({hidden, intermediate});
  }
  shapes.push_back({vocabulary, hidden});
  return shapes;
}

}  // namespace

std::vector<at::Tensor> model_linears(at::ScalarType dtype) {
  int64_t bytes = 0;
  for (const auto& shape : linear_shapes()) bytes += WeightArena::footprint(shape, dtype);
  const auto arena = WeightArena::create(bytes);
  std::vector<at::Tensor> weights;
  for (const auto& shape : linear_shapes()) {
    weights.push_back(arena->allocate(shape, dtype));
    weights.back().fill_(0.02);
  }
  return weights;
}

int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

at::Tensor activations(at::IntArrayRef shape, at::ScalarType dtype) {
  return at::randn(shape, at::TensorOptions().dtype(at::kFloat)).to(dtype);
}

}  // namespace headway::benchmarks
