#include "headway/spmd/partition_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "headway/base/error.h"
#include "headway/parallel/partition.h"

namespace headway {
namespace {

size_t axis_index(const MeshShape& mesh, const std::string& axis) {
  const auto found = std::find(mesh.axis_names.begin(), mesh.axis_names.end(), axis);
  if (found == mesh.axis_names.end()) {
    throw ArgumentError(
        fmt::format("axis \"{}\" is not one of the mesh's axes: {}", axis, fmt::join(mesh.axis_names, ", ")));
  }
  return static_cast<size_t>(found - mesh.axis_names.begin());
}

}  // namespace

int MeshShape::num_ranks() const {
  return axes_size(axis_names);
}

int MeshShape::axis_size(const std::string& axis) const {
  return sizes[axis_index(*this, axis)];
}

int MeshShape::axes_size(const MeshAxes& axes) const {
  int size = 1;
  for (const std::string& axis : axes) size *= axis_size(axis);
  return size;
}

std::vector<int> MeshShape::coordinates(int position) const {
  std::vector<int> found(sizes.size());
  for (size_t i = sizes.size(); i-- > 0; position /= sizes[i]) found[i] = position % sizes[i];
  return found;
}

int MeshShape::position_along(const MeshAxes& axes, const std::vector<int>& coordinates) const {
  int position = 0;
  for (const std::string& axis : axes) position = position * axis_size(axis) + coordinates[axis_index(*this, axis)];
  return position;
}

void validate_mesh_shape(const MeshShape& mesh) {
  if (mesh.sizes.empty() || mesh.sizes.size() != mesh.axis_names.size()) {
    throw ConfigError(
        fmt::format("a mesh of {} dimensions has {} axis names", mesh.sizes.size(), mesh.axis_names.size()));
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < mesh.sizes.size(); ++i) {
    const std::string& axis = mesh.axis_names[i];
    if (mesh.sizes[i] < 1) throw ConfigError(fmt::format("axis \"{}\" of the mesh has size {}", axis, mesh.sizes[i]));
    if (axis.empty() || !seen.insert(axis).second)
      throw ConfigError(fmt::format("axis name \"{}\" is empty or used twice", axis));
  }
}

void validate_partition_spec(const PartitionSpec& spec, int64_t tensor_dimensions, const MeshShape& mesh) {
  if (static_cast<int64_t>(spec.size()) != tensor_dimensions) {
    throw ArgumentError(fmt::format("partition spec {} has {} entries for a tensor of {} dimensions", to_string(spec),
                                    spec.size(), tensor_dimensions));
  }
  std::set<std::string> seen;
  for (const MeshAxes& axes : spec) {
    for (const std::string& axis : axes) {
      axis_index(mesh, axis);
      if (!seen.insert(axis).second) {
        throw ArgumentError(fmt::format("partition spec {} uses axis \"{}\" twice", to_string(spec), axis));
      }
    }
  }
}

std::vector<Range> local_ranges(const std::vector<int64_t>& global_shape, const PartitionSpec& spec,
                                const MeshShape& mesh, const std::vector<int>& coordinates) {
  validate_partition_spec(spec, static_cast<int64_t>(global_shape.size()), mesh);
  std::vector<Range> ranges;
  for (size_t d = 0; d < spec.size(); ++d) {
    const bool whole = spec[d].empty() || global_shape[d] == 1;
    ranges.push_back(
        whole ? Range{0, global_shape[d]}
              : DimPartition::of(global_shape[d], mesh.axes_size(spec[d]), {mesh.position_along(spec[d], coordinates)})
                    .range);
  }
  return ranges;
}

std::string to_string(const PartitionSpec& spec) {
  std::vector<std::string> entries;
  for (const MeshAxes& axes : spec) {
    if (axes.empty()) entries.emplace_back("None");
    if (axes.size() == 1) entries.push_back(axes.front());
    if (axes.size() > 1) entries.push_back(fmt::format("({})", fmt::join(axes, ", ")));
  }
  return fmt::format("({})", fmt::join(entries, ", "));
}

}  // namespace headway
