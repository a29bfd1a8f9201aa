#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headway/parallel/parallel_state.h"
#include "headway/spmd/partition_spec.h"

namespace headway {

/// The first ranks of the world as a row-major grid with named axes. Every rank of the world builds it and asks for
/// its groups in the same order; ranks beyond the grid take part in that and hold no shard.
class DeviceMesh {
 public:
  /// Throws ConfigError for a malformed shape or more positions than the world has ranks.
  DeviceMesh(const ParallelState& state, std::vector<int> shape, std::vector<std::string> axis_names);

  const MeshShape& shape() const { return shape_; }
  bool contains_self() const { return position_ < shape_.num_ranks(); }
  std::vector<int> coordinates() const;  ///< of this rank; throws ArgumentError outside the mesh

  /// The ranks that differ from this one along `axes` alone, ordered by their position along `axes`. Built at the first
  /// call. Throws ArgumentError outside the mesh.
  const GroupCoordinator& group(const MeshAxes& axes) const;

 private:
  std::vector<RankList> groups_along(const MeshAxes& axes) const;

  const ParallelState& state_;
  MeshShape shape_;
  int position_;
  mutable std::map<MeshAxes, std::shared_ptr<const GroupCoordinator>> groups_;
};

}  // namespace headway
