#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>

#include "headway/layers/module.h"
#include "headway/weights/weight_arena.h"

namespace headway {
namespace {

constexpr double kLargest = 127;
constexpr int64_t kRows = 64;  // at a time, so that what is between stays in the cache

using Parameters = std::vector<NamedParameter>;

int64_t arena_bytes(const Parameters& parameters) {
  int64_t bytes = 0;
  for (const auto& [name, parameter] : parameters) {
    const at::Tensor& tensor = parameter->tensor;
    if (parameter->may_be_int8) {
      bytes += WeightArena::footprint(tensor.sizes().vec(), at::kChar);
      bytes += WeightArena::footprint({tensor.size(0)}, at::kFloat);
    } else {
      bytes += WeightArena::footprint(tensor.sizes().vec(), tensor.scalar_type());
    }
  }
  return bytes;
}

template <typename Body>
void for_row_blocks(int64_t rows, const Body& body) {
  for (int64_t begin = 0; begin < rows; begin += kRows) body(begin, std::min(kRows, rows - begin));
}

/// The largest magnitude of each row, of the columns that this rank holds.
at::Tensor largest_of_rows(const at::Tensor& matrix) {
  at::Tensor largest = at::zeros({matrix.size(0)}, at::TensorOptions(at::kFloat));
  if (matrix.size(1) == 0) return largest;
  for_row_blocks(matrix.size(0), [&](int64_t begin, int64_t rows) {
    largest.narrow(0, begin, rows).copy_(matrix.narrow(0, begin, rows).abs().amax(1));
  });
  return largest;
}

void quantize(Parameter& parameter, WeightArena& arena) {
  const at::Tensor matrix = parameter.tensor;
  at::Tensor largest = largest_of_rows(matrix);
  if (parameter.largest_over_ranks) largest = parameter.largest_over_ranks(largest);
  at::Tensor scales = arena.allocate({matrix.size(0)}, at::kFloat);
  scales.copy_(largest.div(kLargest));
  const at::Tensor inverse = scales.reciprocal().masked_fill_(scales.eq(0), 0).unsqueeze(1);  // rows of zeros stay so
  at::Tensor values = arena.allocate(matrix.sizes().vec(), at::kChar);
  for_row_blocks(matrix.size(0), [&](int64_t begin, int64_t rows) {
    at::Tensor scaled = matrix.narrow(0, begin, rows).to(at::kFloat).mul_(inverse.narrow(0, begin, rows));
    values.narrow(0, begin, rows).copy_(scaled.round_().clamp_(-kLargest, kLargest));
  });
  parameter.int8_computes_in = matrix.scalar_type();
  parameter.tensor = values;
  parameter.scales = scales;
}

}  // namespace

void quantize_to_int8(Module& module) {
  const Parameters parameters = module.named_parameters();
  for (const auto& [name, parameter] : parameters) {
    if (parameter->tensor.is_cpu()) continue;
    throw ConfigError(fmt::format("{}: int8 weights are served on the CPU only", name));
  }
  const auto arena = WeightArena::create(arena_bytes(parameters));
  for (const auto& [name, parameter] : parameters) {
    if (parameter->may_be_int8) {
      quantize(*parameter, *arena);
    } else {
      at::Tensor moved = arena->allocate(parameter->tensor.sizes().vec(), parameter->tensor.scalar_type());
      parameter->tensor = moved.copy_(parameter->tensor);
    }
  }
}

}  // namespace headway
