#include "headway/spmd/partition_spec.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "headway/base/error.h"

namespace headway {
namespace {

const MeshShape kDataModel{{1, 4}, {"data", "model"}};
const MeshShape kThreeByTwo{{3, 2}, {"a", "b"}};

std::vector<int64_t> local_shape(const std::vector<int64_t>& shape, const PartitionSpec& spec, const MeshShape& mesh,
                                 int rank) {
  std::vector<int64_t> sizes;
  for (const Range& range : local_ranges(shape, spec, mesh, mesh.coordinates(rank))) sizes.push_back(range.size());
  return sizes;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Fault case G01: the order of the spec decides which dimension is cut.
TEST(PartitionSpec, OrderDecides) {
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(local_shape({64, 32}, {{"data"}, {"model"}}, kDataModel, rank), (std::vector<int64_t>{64, 8}));
    EXPECT_EQ(local_shape({64, 32}, {{"model"}, {"data"}}, kDataModel, rank), (std::vector<int64_t>{16, 32}));
  }
}

// Fault case G02.
TEST(PartitionSpec, RefusesWrongLengthsUnknownAndRepeatedAxes) {
  EXPECT_EQ(error_of([] {
              validate_partition_spec({{"data"}, {"model"}}, 1, kDataModel);
            }),
            "partition spec (data, model) has 2 entries for a tensor of 1 dimensions");
  EXPECT_EQ(error_of([] { validate_partition_spec({{"expert"}}, 1, kDataModel); }),
            "axis \"expert\" is not one of the mesh's axes: data, model");
  EXPECT_EQ(error_of([] {
              validate_partition_spec({{"model"}, {"model"}}, 2, kDataModel);
            }),
            "partition spec (model, model) uses axis \"model\" twice");
  EXPECT_EQ(error_of([] {
              validate_partition_spec({{"model", "model"}, {}}, 2, kDataModel);
            }),
            "partition spec ((model, model), None) uses axis \"model\" twice");
}

// Fault case G06: an empty shard has a defined offset.
TEST(PartitionSpec, EmptyShardsHaveOffsets) {
  const MeshShape mesh{{30}, {"x"}};
  int empty = 0;
  int64_t next = 0;
  for (int rank = 0; rank < 30; ++rank) {
    const Range range = local_ranges({20}, {{"x"}}, mesh, mesh.coordinates(rank)).front();
    EXPECT_EQ(range.begin, next);
    next = range.end;
    empty += range.empty();
  }
  EXPECT_EQ(empty, 10);
  EXPECT_EQ(next, 20);
}

// Fault case G13: two axes on one dimension hold each index once.
TEST(PartitionSpec, TwoAxesOnOneDimensionHoldEachIndexOnce) {
  for (const MeshAxes& axes : {MeshAxes{"a", "b"}, MeshAxes{"b", "a"}}) {
    std::set<int64_t> seen;
    for (int rank = 0; rank < 6; ++rank) {
      const Range range = local_ranges({6}, {axes}, kThreeByTwo, kThreeByTwo.coordinates(rank)).front();
      ASSERT_EQ(range.size(), 1);
      EXPECT_TRUE(seen.insert(range.begin).second);
    }
  }
  EXPECT_EQ(local_ranges({6}, {{"b", "a"}}, kThreeByTwo, {2, 1}).front(), (Range{5, 6}));
  EXPECT_EQ(local_ranges({6}, {{"b", "a"}}, kThreeByTwo, {0, 1}).front(), (Range{3, 4}));
}

// Fault case G11: a dimension of size 1 is never cut.
TEST(PartitionSpec, ASizeOneDimensionStaysWhole) {
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(local_shape({1, 12}, {{"model"}, {"data"}}, kDataModel, rank), (std::vector<int64_t>{1, 12}));
  }
}

TEST(MeshShape, IsRowMajor) {
  EXPECT_EQ(kThreeByTwo.num_ranks(), 6);
  EXPECT_EQ(kThreeByTwo.coordinates(3), (std::vector<int>{1, 1}));
  EXPECT_EQ(kThreeByTwo.coordinates(4), (std::vector<int>{2, 0}));
  EXPECT_EQ(kThreeByTwo.axes_size({"b"}), 2);
}

TEST(MeshShape, RefusesMalformedShapes) {
  EXPECT_EQ(error_of([] { validate_mesh_shape({{2, 2}, {"x"}}); }), "a mesh of 2 dimensions has 1 axis names");
  EXPECT_EQ(error_of([] { validate_mesh_shape({{2, 0}, {"x", "y"}}); }), "axis \"y\" of the mesh has size 0");
  EXPECT_EQ(error_of([] { validate_mesh_shape({{2, 2}, {"x", "x"}}); }), "axis name \"x\" is empty or used twice");
}

}  // namespace
}  // namespace headway
