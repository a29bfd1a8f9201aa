#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headway/base/range.h"

namespace headway {

/// The mesh axes that cut one dimension, the first varying slowest; empty: the dimension is whole on every rank.
using MeshAxes = std::vector<std::string>;

/// One entry per dimension of a tensor.
using PartitionSpec = std::vector<MeshAxes>;

/// The names and sizes of a mesh's axes, row-major: the last axis varies fastest over the ranks.
struct MeshShape {
  std::vector<int> sizes;
  std::vector<std::string> axis_names;

  int num_ranks() const;
  int axis_size(const std::string& axis) const;      ///< throws ArgumentError for an unknown axis
  int axes_size(const MeshAxes& axes) const;         ///< product over `axes`
  std::vector<int> coordinates(int position) const;  ///< of the rank at that place in the mesh
  int position_along(const MeshAxes& axes, const std::vector<int>& coordinates) const;  ///< row-major over `axes`
};

/// Throws ConfigError unless sizes are positive and axis names are as many as the sizes, not empty and distinct.
void validate_mesh_shape(const MeshShape& mesh);

/// Throws ArgumentError unless the spec has an entry per dimension and names known axes, each at most once.
void validate_partition_spec(const PartitionSpec& spec, int64_t tensor_dimensions, const MeshShape& mesh);

/// The part of a tensor of `global_shape` that the rank at `coordinates` holds: [begin, end) per dimension. Dimensions
/// are cut as DimPartition says; a dimension of size 1 is never cut.
std::vector<Range> local_ranges(const std::vector<int64_t>& global_shape, const PartitionSpec& spec,
                                const MeshShape& mesh, const std::vector<int>& coordinates);

/// "(data, (x, y), None)".
std::string to_string(const PartitionSpec& spec);

}  // namespace headway
