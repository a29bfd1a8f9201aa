#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Formatting.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "headway/layers/module.h"

namespace headway::testing {

// All of these lie on the device of the launch's backend.

/// The tensor there.
at::Tensor on_device(const at::Tensor& tensor);

/// The fp32 vector of these values there.
at::Tensor values(const std::vector<float>& elements);

/// Gives the module fp32 memory there.
void allocate(Module& module);

/// A [rows, columns] tensor whose elements all differ: value(i, j) = 1000 * i + j + offset, fp32.
at::Tensor sequence_matrix(int64_t rows, int64_t columns, double offset = 0);

/// offset, offset + 1, ...
at::Tensor sequence_vector(int64_t size, double offset = 0);

/// Random values from a fixed seed, the same on every rank.
at::Tensor random_tensor(const std::vector<int64_t>& shape, uint64_t seed);
at::Tensor random_matrix(int64_t rows, int64_t columns, uint64_t seed);

/// Gives the module fp32 memory and fills every parameter from full random tensors that depend on its name and
/// section alone, so that modules sharded differently hold the same weights.
void fill_from_full_tensors(Module& module, double scale = 0.2);

}  // namespace headway::testing
