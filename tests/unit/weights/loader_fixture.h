#pragma once

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "headway/weights/weight_loader.h"
#include "support/temporary_folder.h"
#include "support/tensor_files.h"

namespace headway::test {

/// Every element distinct: W[i][j] = first + 1000 * i + j.
inline at::Tensor distinct(int64_t rows, int64_t columns, double first = 0) {
  return at::arange(rows, at::kFloat).mul(1000).unsqueeze(1).add(at::arange(columns, at::kFloat)).add(first);
}

/// A parameter in memory that was filled with -1, so that what a load leaves out shows.
inline NamedParameter allotted(std::string full_name, std::vector<int64_t> shape, std::vector<TensorSlice> slices,
                               c10::ScalarType dtype = c10::kFloat, c10::Device device = c10::kCPU) {
  auto parameter = std::make_shared<Parameter>(Parameter{full_name.substr(full_name.rfind('.') + 1), shape,
                                                         std::move(slices), at::full(shape, -1, dtype).to(device)});
  return {std::move(full_name), std::move(parameter)};
}

/// A parameter that is one whole checkpoint tensor.
inline NamedParameter whole(std::string full_name, std::vector<int64_t> shape, c10::ScalarType dtype = c10::kFloat) {
  TensorSlice slice{"", shape, 0, {0, shape.at(0)}};
  return allotted(std::move(full_name), std::move(shape), {slice}, dtype);
}

/// A folder with one model.safetensors of these tensors, opened.
class Checkpoint {
 public:
  explicit Checkpoint(const std::vector<std::pair<std::string, at::Tensor>>& tensors)
      : index_((write(folder_, tensors), folder_.path())) {}

  const CheckpointIndex& index() const { return index_; }

  LoadReport load(const std::vector<NamedParameter>& parameters, CheckpointNames names = {},
                  const LoadProgress& progress = {}) const {
    return WeightLoader(index_, std::move(names)).load(parameters, progress);
  }

 private:
  static void write(const TemporaryFolder& folder, const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
    std::vector<RawTensor> raw_tensors;
    for (const auto& [name, tensor] : tensors) raw_tensors.push_back(raw(name, tensor));
    folder.write("model.safetensors", safetensors_of(raw_tensors));
  }

  TemporaryFolder folder_;
  CheckpointIndex index_;
};

}  // namespace headway::test
