#include "headway/spmd/device_mesh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "headway/base/error.h"

namespace headway {

DeviceMesh::DeviceMesh(const ParallelState& state, std::vector<int> shape, std::vector<std::string> axis_names)
    : state_(state), shape_{std::move(shape), std::move(axis_names)}, position_(state.world().rank().value) {
  validate_mesh_shape(shape_);
  if (shape_.num_ranks() > state.world().size()) {
    throw ConfigError(fmt::format("a mesh of [{}] needs {} ranks; the world has {}", fmt::join(shape_.sizes, ", "),
                                  shape_.num_ranks(), state.world().size()));
  }
}

std::vector<int> DeviceMesh::coordinates() const {
  if (!contains_self()) {
    throw ArgumentError(fmt::format("rank {} is outside the mesh of {} ranks", position_, shape_.num_ranks()));
  }
  return shape_.coordinates(position_);
}

const GroupCoordinator& DeviceMesh::group(const MeshAxes& axes) const {
  const std::vector<int> here = coordinates();
  auto& group = groups_[axes];
  if (!group) group = state_.new_group(fmt::format("mesh({})", fmt::join(axes, ",")), groups_along(axes));
  return *group;
}

std::vector<RankList> DeviceMesh::groups_along(const MeshAxes& axes) const {
  MeshAxes others;
  for (const std::string& axis : shape_.axis_names) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) others.push_back(axis);
  }
  std::vector<RankList> groups(shape_.axes_size(others), RankList(shape_.axes_size(axes)));
  for (int position = 0; position < shape_.num_ranks(); ++position) {
    const std::vector<int> at = shape_.coordinates(position);
    groups[shape_.position_along(others, at)][shape_.position_along(axes, at)] = GlobalRank{position};
  }
  return groups;
}

}  // namespace headway
