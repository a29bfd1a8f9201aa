#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "headway/spmd/device_mesh.h"

namespace headway {

/// One rank's part of a tensor that a mesh holds together.
class ShardedTensor {
 public:
  const std::vector<int64_t>& global_shape() const { return global_shape_; }
  const PartitionSpec& spec() const { return spec_; }
  const at::Tensor& local() const { return local_; }  ///< may be empty
  std::vector<int64_t> offsets() const;               ///< where `local` begins in each dimension, also when empty
  const std::vector<Range>& ranges() const { return ranges_; }

  /// The whole tensor on every rank of the mesh, bit-equal to the one that was sharded. A collective.
  at::Tensor full_tensor() const;

 private:
  friend ShardedTensor mark_sharding(const at::Tensor& tensor, const DeviceMesh& mesh, PartitionSpec spec);
  ShardedTensor(const DeviceMesh& mesh, std::vector<int64_t> global_shape, PartitionSpec spec);

  const DeviceMesh* mesh_;
  std::vector<int64_t> global_shape_;
  PartitionSpec spec_;
  std::vector<Range> ranges_;
  at::Tensor local_;
};

/// Keeps this rank's part of `tensor`, which every rank holds whole; the part has memory of its own. Throws
/// ArgumentError for a spec that does not fit the tensor or the mesh. The mesh must outlive the result.
ShardedTensor mark_sharding(const at::Tensor& tensor, const DeviceMesh& mesh, PartitionSpec spec);

}  // namespace headway
