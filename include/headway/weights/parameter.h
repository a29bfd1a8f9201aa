#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headway/base/range.h"

namespace headway {

/// A part of one checkpoint tensor, and where it belongs in a parameter. Only dimension `dim` is cut.
struct TensorSlice {
  std::string section;               ///< "" if the parameter is one checkpoint tensor; "q", "k", "v", "gate", "up"
  std::vector<int64_t> total_shape;  ///< of the section in the checkpoint
  int64_t dim = 0;                   ///< the dimension that is cut
  Range range;                       ///< the part of it that this rank holds
  int64_t offset = 0;                ///< where the part begins along `dim` of the parameter
  int64_t fused_offset = 0;          ///< where the section begins along `dim` of a tensor that is fused on disk
};

/// A tensor of a layer, declared where the layer is built and filled by a loader. `shape` is the local shape; the
/// tensor stays undefined until memory is allotted (see Module::allocate).
struct Parameter {
  std::string name;  ///< within its module: "weight" or "bias"
  std::vector<int64_t> shape;
  std::vector<TensorSlice> slices;
  at::Tensor tensor;

  /// Whether the parameter is a matrix whose rows may be held in int8, and what takes the largest value of every row
  /// over the ranks that hold other columns of the same rows; empty where the rows are whole.
  bool may_be_int8 = false;
  std::function<at::Tensor(const at::Tensor&)> largest_over_ranks = {};
  /// Set once it is held so: the fp32 factor of every row, and the dtype that the layer computes in.
  at::Tensor scales = {};
  c10::ScalarType int8_computes_in = c10::ScalarType::Undefined;

  int64_t nbytes() const;  ///< of the tensor and its scales

  int64_t numel() const;
};

/// A parameter with its full name in the model, e.g. "model.layers.0.self_attn.qkv_proj.weight".
struct NamedParameter {
  std::string full_name;
  std::shared_ptr<Parameter> parameter;
};

}  // namespace headway
