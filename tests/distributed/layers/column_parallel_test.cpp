#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "distributed/layers/layer_support.h"
#include "distributed/support/parallel_test.h"
#include "headway/layers/attn_linear.h"
#include "headway/weights/weight_loader.h"

// Loading and forward of the column-parallel layers, by value, in every group of every legal size of this world.
namespace headway {
namespace {

using ::testing::Combine;
using testing::sequence_matrix;
using testing::sequence_vector;
using ::testing::Values;

struct Heads {
  int64_t q;
  int64_t kv;
};

void PrintTo(const Heads& heads, std::ostream* out) {
  *out << heads.q << "/" << heads.kv;
}

at::Tensor rows(const at::Tensor& full, Range range) {
  return full.narrow(0, range.begin, range.size());
}

Range times(Range range, int64_t factor) {
  return {range.begin * factor, range.end * factor};
}

class QkvTest : public ::testing::TestWithParam<std::tuple<Heads, int>> {
 protected:
  static constexpr int64_t kHidden = 6;
  static constexpr int64_t kHeadDim = 2;

  void SetUp() override {
    if (world_size() % attn_tp() != 0) GTEST_SKIP() << attn_tp() << " does not divide " << world_size() << " ranks";
    if (attn_tp() > heads().q) GTEST_SKIP() << attn_tp() << " ranks for " << heads().q << " query heads";
  }

  static Heads heads() { return std::get<0>(GetParam()); }
  static int attn_tp() { return std::get<1>(GetParam()); }
  static const ParallelState& state() { return testing::parallel_state(world_size(), attn_tp()); }
  static int world_size() { return testing::world_size(); }
  static QKVShape shape() { return {kHidden, kHeadDim, {heads().q, heads().kv}}; }
  static HeadPartition part() {
    return HeadPartition::of({heads().q, heads().kv}, attn_tp(), state().lm_head_tp().rank());
  }

  static at::Tensor q_weight() { return sequence_matrix(heads().q * kHeadDim, kHidden, 0.0); }
  static at::Tensor k_weight() { return sequence_matrix(heads().kv * kHeadDim, kHidden, 0.25); }
  static at::Tensor v_weight() { return sequence_matrix(heads().kv * kHeadDim, kHidden, 0.5); }
  static at::Tensor q_bias() { return sequence_vector(heads().q * kHeadDim, 0); }
  static at::Tensor k_bias() { return sequence_vector(heads().kv * kHeadDim, 10000); }
  static at::Tensor v_bias() { return sequence_vector(heads().kv * kHeadDim, 20000); }

  static std::unique_ptr<AttnQKVParallelLinear> loaded(ColumnOptions options) {
    auto layer = std::make_unique<AttnQKVParallelLinear>(state(), shape(), options);
    allocate_parameters(*layer, at::kFloat);
    Parameter& weight = layer->own_parameter("weight");
    load_section(weight, q_weight(), "q");
    load_section(weight, k_weight(), "k");
    load_section(weight, v_weight(), "v");
    if (!options.bias) return layer;
    Parameter& bias = layer->own_parameter("bias");
    load_section(bias, q_bias(), "q");
    load_section(bias, k_bias(), "k");
    load_section(bias, v_bias(), "v");
    return layer;
  }
};

// Fault cases A02, A03, B05: whole heads, the rank's own, every value.
TEST_P(QkvTest, EveryRankHoldsItsOwnHeadsOfEverySection) {
  const auto layer = loaded({});
  const Range q = times(part().q_heads, kHeadDim);
  const Range kv = times(part().kv_heads, kHeadDim);
  const at::Tensor weight = at::cat({rows(q_weight(), q), rows(k_weight(), kv), rows(v_weight(), kv)});
  EXPECT_TRUE(layer->own_parameter("weight").tensor.equal(weight));
  EXPECT_TRUE(
      layer->own_parameter("bias").tensor.equal(at::cat({rows(q_bias(), q), rows(k_bias(), kv), rows(v_bias(), kv)})));
}

TEST_P(QkvTest, GatheredOutputIsTheUnshardedOneInLogicalOrder) {
  const at::Tensor input = sequence_matrix(3, kHidden) / 1000;
  const at::Tensor expected =
      at::linear(input, at::cat({q_weight(), k_weight(), v_weight()}), at::cat({q_bias(), k_bias(), v_bias()}));
  const at::Tensor output = loaded({.gather_output = true})->forward(input);
  EXPECT_TRUE(output.allclose(expected, 1e-6, 1e-3)) << output - expected;
}

TEST_P(QkvTest, ASkippedBiasIsHandedOutWhole) {
  const at::Tensor input = sequence_matrix(2, kHidden) / 1000;
  const LinearOutput skipped = loaded({.skip_bias_add = true, .gather_output = true})->forward(input);
  EXPECT_TRUE(skipped.bias.equal(at::cat({q_bias(), k_bias(), v_bias()})));
  EXPECT_TRUE(skipped.output.allclose(at::linear(input, at::cat({q_weight(), k_weight(), v_weight()})), 1e-6, 1e-3));
  EXPECT_FALSE(loaded({.skip_bias_add = true, .return_bias = false})->forward(input).bias.defined());
  EXPECT_FALSE(loaded({.bias = false, .skip_bias_add = true, .gather_output = true})->forward(input).bias.defined());
}

INSTANTIATE_TEST_SUITE_P(Heads, QkvTest,
                         Combine(Values(Heads{4, 2}, Heads{8, 4}, Heads{12, 2}, Heads{28, 4}, Heads{9, 3}, Heads{14, 2},
                                        Heads{5, 1}),
                                 Values(1, 2, 3, 4, 8)));

const ParallelState* pair_state() {
  return testing::world_size() % 2 == 0 ? &testing::parallel_state(testing::world_size(), 2) : nullptr;
}

// Fault case B04.
TEST(QkvFaults, BiasIsCutPerSection) {
  if (pair_state() == nullptr) GTEST_SKIP() << "needs an even number of ranks";
  AttnQKVParallelLinear layer(*pair_state(), {1, 2, {4, 2}});
  allocate_parameters(layer, at::kFloat);
  Parameter& bias = layer.own_parameter("bias");
  load_section(bias, sequence_vector(8), "q");
  load_section(bias, sequence_vector(4, 100), "k");
  load_section(bias, sequence_vector(4, 200), "v");
  const bool first = pair_state()->lm_head_tp().rank().value == 0;
  EXPECT_TRUE(bias.tensor.equal(first ? at::tensor({0.f, 1.f, 2.f, 3.f, 100.f, 101.f, 200.f, 201.f})
                                      : at::tensor({4.f, 5.f, 6.f, 7.f, 102.f, 103.f, 202.f, 203.f})));
}

// Fault case A19.
TEST(QkvFaults, BiasOfARankWithSeveralKvHeadsIsWhole) {
  if (pair_state() == nullptr) GTEST_SKIP() << "needs an even number of ranks";
  AttnQKVParallelLinear layer(*pair_state(), {1, 2, {8, 4}});
  allocate_parameters(layer, at::kFloat);
  Parameter& bias = layer.own_parameter("bias");
  load_section(bias, sequence_vector(16, 50), "q");
  load_section(bias, sequence_vector(8, 0), "k");
  load_section(bias, sequence_vector(8, 10), "v");
  const bool first = pair_state()->lm_head_tp().rank().value == 0;
  EXPECT_TRUE(bias.tensor.narrow(0, 8, 4).equal(sequence_vector(4, first ? 0 : 4)));
  EXPECT_TRUE(bias.tensor.narrow(0, 12, 4).equal(sequence_vector(4, first ? 10 : 14)));
}

// Fault case B06: a weight that is fused in the file is cut section by section.
TEST(QkvFaults, FusedRowsAreCutBySection) {
  if (pair_state() == nullptr) GTEST_SKIP() << "needs an even number of ranks";
  AttnQKVParallelLinear layer(*pair_state(), {1, 1, {4, 2}});
  std::vector<int64_t> fused_rows;
  for (const TensorSlice& slice : layer.own_parameter("weight").slices) {
    for (int64_t i = slice.range.begin; i < slice.range.end; ++i) fused_rows.push_back(slice.fused_offset + i);
  }
  const bool first = pair_state()->lm_head_tp().rank().value == 0;
  EXPECT_EQ(fused_rows, first ? (std::vector<int64_t>{0, 1, 4, 6}) : (std::vector<int64_t>{2, 3, 5, 7}));
}

TEST(ColumnParallel, UnevenAndEmptyCutsGatherToTheWhole) {
  const GroupCoordinator& group = testing::parallel_state(testing::world_size(), testing::world_size()).tp();
  for (int64_t out : {1, 2, 3, 5, 7, 130, 321}) {
    ColumnParallelLinear layer(group, 4, out, {.gather_output = true});
    allocate_parameters(layer, at::kFloat);
    load_section(layer.own_parameter("weight"), sequence_matrix(out, 4));
    load_section(layer.own_parameter("bias"), sequence_vector(out, 7));
    EXPECT_TRUE(layer.own_parameter("weight").tensor.equal(rows(sequence_matrix(out, 4), layer.local_range(0))));
    const at::Tensor input = sequence_matrix(2, 4) / 1000;
    const at::Tensor expected = at::linear(input, sequence_matrix(out, 4), sequence_vector(out, 7));
    EXPECT_TRUE(at::Tensor(layer.forward(input)).allclose(expected, 1e-6, 1e-3)) << "out " << out;
  }
}

TEST(MergedColumnParallel, EachRankHoldsItsPartOfEveryOutput) {
  const GroupCoordinator& group = testing::parallel_state(testing::world_size(), testing::world_size()).tp();
  MergedColumnParallelLinear layer(group, 3, {{"gate", 10}, {"up", 10}}, {.bias = false});
  allocate_parameters(layer, at::kFloat);
  Parameter& weight = layer.own_parameter("weight");
  load_section(weight, sequence_matrix(10, 3), "gate");
  load_section(weight, sequence_matrix(10, 3, 0.5), "up");
  const Range mine = DimPartition::of(10, group.size(), group.rank()).range;
  EXPECT_TRUE(
      weight.tensor.equal(at::cat({rows(sequence_matrix(10, 3), mine), rows(sequence_matrix(10, 3, 0.5), mine)})));
}

TEST(ColumnParallel, RefusesAnInputOfTheWrongWidth) {
  ColumnParallelLinear layer(testing::parallel_state(testing::world_size(), 1).self(), 4, 2, {.bias = false});
  allocate_parameters(layer, at::kFloat);
  load_section(layer.own_parameter("weight"), sequence_matrix(2, 4));
  try {
    layer.forward(sequence_matrix(3, 5));
    FAIL() << "5 features went into a layer of 4";
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(error.what(), "column-parallel linear: expected an input of [tokens, 4], got [3, 5]");
  }
}

}  // namespace
}  // namespace headway
