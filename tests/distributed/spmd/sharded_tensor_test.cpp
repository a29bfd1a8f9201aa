#include "headway/spmd/sharded_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "distributed/layers/layer_support.h"
#include "distributed/support/parallel_test.h"
#include "headway/base/error.h"

namespace headway {
namespace {

using testing::world_size;

const ParallelState& state() {
  return testing::parallel_state(1);
}

TEST(ShardedTensor, EachRankHoldsItsCutAndTheWholeComesBackBitEqual) {
  const DeviceMesh mesh(state(), {1, world_size()}, {"data", "model"});
  const at::Tensor full = testing::random_matrix(13, 37, 8);
  for (const PartitionSpec& spec : std::vector<PartitionSpec>{
           {{"data"}, {"model"}}, {{"model"}, {"data"}}, {{"model"}, {}}, {{}, {}}, {{"model", "data"}, {}}}) {
    const ShardedTensor sharded = mark_sharding(full, mesh, spec);
    const auto& ranges = sharded.ranges();
    EXPECT_TRUE(sharded.local().equal(
        full.narrow(0, ranges[0].begin, ranges[0].size()).narrow(1, ranges[1].begin, ranges[1].size())));
    EXPECT_EQ(sharded.offsets(), (std::vector<int64_t>{ranges[0].begin, ranges[1].begin}));
    EXPECT_TRUE(sharded.full_tensor().equal(full)) << to_string(spec);
  }
}

// Fault case G06: with more ranks than rows the gather still returns every row once, in order.
TEST(ShardedTensor, EmptyShardsGatherBack) {
  const DeviceMesh mesh(state(), {world_size()}, {"x"});
  for (int64_t rows : {1, 2, 3, 5, 20}) {
    const at::Tensor full = testing::on_device(at::arange(rows, at::kLong) * 7 + 3);
    EXPECT_TRUE(mark_sharding(full, mesh, {{"x"}}).full_tensor().equal(full)) << rows << " rows";
  }
}

// Fault case G13, on a mesh of two axes.
TEST(ShardedTensor, TwoAxesOnOneDimensionGatherBackInOrder) {
  if (world_size() % 2 != 0) GTEST_SKIP() << "needs an even number of ranks";
  const DeviceMesh mesh(state(), {world_size() / 2, 2}, {"a", "b"});
  const at::Tensor full = testing::sequence_vector(6);
  for (const MeshAxes& axes : {MeshAxes{"a", "b"}, MeshAxes{"b", "a"}}) {
    const ShardedTensor sharded = mark_sharding(full, mesh, {axes});
    for (int64_t i = 0; i < sharded.local().size(0); ++i) {
      EXPECT_EQ(sharded.local()[i].item<float>(), static_cast<float>(sharded.offsets().front() + i));
    }
    EXPECT_TRUE(sharded.full_tensor().equal(full));
  }
}

TEST(ShardedTensor, TwoDimensionsOverTwoAxes) {
  if (world_size() % 2 != 0) GTEST_SKIP() << "needs an even number of ranks";
  const DeviceMesh mesh(state(), {world_size() / 2, 2}, {"a", "b"});
  const at::Tensor full = testing::sequence_matrix(7, 9);
  EXPECT_TRUE(mark_sharding(full, mesh, {{"b"}, {"a"}}).full_tensor().equal(full));
}

// Fault case G07.
TEST(DeviceMesh, RefusesMoreRanksThanTheWorldHas) {
  try {
    const DeviceMesh mesh(state(), {9}, {"x"});
    FAIL() << "a mesh of 9 ranks was built in a world of " << world_size();
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()), "a mesh of [9] needs 9 ranks; the world has " + std::to_string(world_size()));
  }
}

// Fault case G07: a sub-mesh is a group of exactly its ranks; the others return cleanly.
TEST(DeviceMesh, ASubMeshHasExactlyItsRanks) {
  if (world_size() < 2) GTEST_SKIP() << "needs two ranks";
  const DeviceMesh mesh(state(), {2}, {"x"});
  EXPECT_EQ(mesh.contains_self(), testing::global_rank().value < 2);
  if (!mesh.contains_self()) {
    EXPECT_THROW(mesh.coordinates(), ArgumentError);
    return;
  }
  EXPECT_EQ(mesh.group({"x"}).ranks(), (RankList{{0}, {1}}));
  const at::Tensor full = testing::sequence_vector(11);
  EXPECT_TRUE(mark_sharding(full, mesh, {{"x"}}).full_tensor().equal(full));
}

}  // namespace
}  // namespace headway
