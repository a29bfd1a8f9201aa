#include "headway/spmd/sharded_tensor.h"

#include "headway/parallel/partition.h"

namespace headway {

ShardedTensor::ShardedTensor(const DeviceMesh& mesh, std::vector<int64_t> global_shape, PartitionSpec spec)
    : mesh_(&mesh),
      global_shape_(std::move(global_shape)),
      spec_(std::move(spec)),
      ranges_(local_ranges(global_shape_, spec_, mesh.shape(), mesh.coordinates())) {}

std::vector<int64_t> ShardedTensor::offsets() const {
  std::vector<int64_t> begins;
  for (const Range& range : ranges_) begins.push_back(range.begin);
  return begins;
}

at::Tensor ShardedTensor::full_tensor() const {
  at::Tensor gathered = local_;
  for (size_t d = 0; d < spec_.size(); ++d) {
    if (spec_[d].empty() || global_shape_[d] == 1) continue;
    const GroupCoordinator& group = mesh_->group(spec_[d]);
    gathered = group.all_gather(gathered, static_cast<int64_t>(d), dim_partition_sizes(global_shape_[d], group.size()));
  }
  return gathered;
}

ShardedTensor mark_sharding(const at::Tensor& tensor, const DeviceMesh& mesh, PartitionSpec spec) {
  ShardedTensor sharded(mesh, tensor.sizes().vec(), std::move(spec));
  at::Tensor local = tensor;
  for (size_t d = 0; d < sharded.ranges_.size(); ++d) {
    local = local.narrow(static_cast<int64_t>(d), sharded.ranges_[d].begin, sharded.ranges_[d].size());
  }
  sharded.local_ = local.clone(at::MemoryFormat::Contiguous);
  return sharded;
}

}  // namespace headway
