#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
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

/// One attention block's projections, loaded with distinct values for one size of the attention group.
struct Qkv {
  static constexpr int64_t kHidden = 6;
  static constexpr int64_t kHeadDim = 2;

  Qkv(Heads heads, int attn_tp)
      : state(testing::parallel_state(attn_tp)),
        heads(heads),
        part(HeadPartition::of({heads.q, heads.kv}, attn_tp, state.lm_head_tp().rank())),
        q_weight(sequence_matrix(heads.q * kHeadDim, kHidden, 0.0)),
        k_weight(sequence_matrix(heads.kv * kHeadDim, kHidden, 0.25)),
        v_weight(sequence_matrix(heads.kv * kHeadDim, kHidden, 0.5)),
        q_bias(sequence_vector(heads.q * kHeadDim, 0)),
        k_bias(sequence_vector(heads.kv * kHeadDim, 10000)),
        v_bias(sequence_vector(heads.kv * kHeadDim, 20000)) {}

  std::unique_ptr<AttnQKVParallelLinear> loaded(ColumnOptions options) const {
    auto layer =
        std::make_unique<AttnQKVParallelLinear>(state, QKVShape{kHidden, kHeadDim, {heads.q, heads.kv}}, options);
    testing::allocate(*layer);
    Parameter& weight = layer->own_parameter("weight");
    load_section(weight, q_weight, "q");
    load_section(weight, k_weight, "k");
    load_section(weight, v_weight, "v");
    if (!options.bias) return layer;
    Parameter& bias = layer->own_parameter("bias");
    load_section(bias, q_bias, "q");
    load_section(bias, k_bias, "k");
    load_section(bias, v_bias, "v");
    return layer;
  }

  at::Tensor full_weight() const { return at::cat({q_weight, k_weight, v_weight}); }
  at::Tensor full_bias() const { return at::cat({q_bias, k_bias, v_bias}); }

  const ParallelState& state;
  Heads heads;
  HeadPartition part;
  at::Tensor q_weight, k_weight, v_weight, q_bias, k_bias, v_bias;
};

/// Runs for every size of the attention group that this world and the heads allow.
class QkvTest : public ::testing::TestWithParam<Heads> {
 protected:
  static std::vector<int> attention_sizes() {
    std::vector<int> sizes;
    for (int size : testing::divisors(testing::world_size())) {
      if (size <= GetParam().q) sizes.push_back(size);
    }
    return sizes;
  }
};

// Fault cases A02, A03, B05: whole heads, the rank's own, every value.
TEST_P(QkvTest, EveryRankHoldsItsOwnHeadsOfEverySection) {
  for (int attn_tp : attention_sizes()) {
    const Qkv qkv(GetParam(), attn_tp);
    const auto layer = qkv.loaded({});
    const Range q = times(qkv.part.q_heads, Qkv::kHeadDim);
    const Range kv = times(qkv.part.kv_heads, Qkv::kHeadDim);
    EXPECT_TRUE(layer->own_parameter("weight").tensor.equal(
        at::cat({rows(qkv.q_weight, q), rows(qkv.k_weight, kv), rows(qkv.v_weight, kv)})))
        << attn_tp << " ranks";
    EXPECT_TRUE(layer->own_parameter("bias").tensor.equal(
        at::cat({rows(qkv.q_bias, q), rows(qkv.k_bias, kv), rows(qkv.v_bias, kv)})))
        << attn_tp << " ranks";
  }
}

TEST_P(QkvTest, GatheredOutputIsTheUnshardedOneInLogicalOrder) {
  const at::Tensor input = sequence_matrix(3, Qkv::kHidden) / 1000;
  for (int attn_tp : attention_sizes()) {
    const Qkv qkv(GetParam(), attn_tp);
    const at::Tensor expected = at::linear(input, qkv.full_weight(), qkv.full_bias());
    const at::Tensor output = qkv.loaded({.gather_output = true})->forward(input);
    EXPECT_TRUE(output.allclose(expected, 1e-6, 1e-3)) << attn_tp << " ranks: " << output - expected;
  }
}

TEST_P(QkvTest, ASkippedBiasIsHandedOutWhole) {
  const at::Tensor input = sequence_matrix(2, Qkv::kHidden) / 1000;
  for (int attn_tp : attention_sizes()) {
    const Qkv qkv(GetParam(), attn_tp);
    const LinearOutput skipped = qkv.loaded({.skip_bias_add = true, .gather_output = true})->forward(input);
    EXPECT_TRUE(skipped.bias.equal(qkv.full_bias())) << attn_tp << " ranks";
    EXPECT_TRUE(skipped.output.allclose(at::linear(input, qkv.full_weight()), 1e-6, 1e-3)) << attn_tp << " ranks";
    EXPECT_FALSE(qkv.loaded({.skip_bias_add = true, .return_bias = false})->forward(input).bias.defined());
    EXPECT_FALSE(
        qkv.loaded({.bias = false, .skip_bias_add = true, .gather_output = true})->forward(input).bias.defined());
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, QkvTest,
                         ::testing::Values(Heads{4, 2}, Heads{8, 4}, Heads{12, 2}, Heads{28, 4}, Heads{9, 3},
                                           Heads{14, 2}, Heads{5, 1}));

const ParallelState* pair_state() {
  return testing::world_size() % 2 == 0 ? &testing::parallel_state(2) : nullptr;
}

// Fault case B04.
TEST(QkvFaults, BiasIsCutPerSection) {
  if (pair_state() == nullptr) GTEST_SKIP() << "needs an even number of ranks";
  AttnQKVParallelLinear layer(*pair_state(), {1, 2, {4, 2}});
  testing::allocate(layer);
  Parameter& bias = layer.own_parameter("bias");
  load_section(bias, sequence_vector(8), "q");
  load_section(bias, sequence_vector(4, 100), "k");
  load_section(bias, sequence_vector(4, 200), "v");
  const bool first = pair_state()->lm_head_tp().rank().value == 0;
  EXPECT_TRUE(bias.tensor.equal(first ? testing::values({0, 1, 2, 3, 100, 101, 200, 201})
                                      : testing::values({4, 5, 6, 7, 102, 103, 202, 203})));
}

// Fault case A19.
TEST(QkvFaults, BiasOfARankWithSeveralKvHeadsIsWhole) {
  if (pair_state() == nullptr) GTEST_SKIP() << "needs an even number of ranks";
  AttnQKVParallelLinear layer(*pair_state(), {1, 2, {8, 4}});
  testing::allocate(layer);
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
  const GroupCoordinator& group = testing::parallel_state(testing::world_size()).tp();
  for (int64_t out : {1, 2, 3, 5, 7, 130, 321}) {
    ColumnParallelLinear layer(group, 4, out, {.gather_output = true});
    testing::allocate(layer);
    load_section(layer.own_parameter("weight"), sequence_matrix(out, 4));
    load_section(layer.own_parameter("bias"), sequence_vector(out, 7));
    EXPECT_TRUE(layer.own_parameter("weight").tensor.equal(rows(sequence_matrix(out, 4), layer.local_range(0))));
    const at::Tensor input = sequence_matrix(2, 4) / 1000;
    const at::Tensor expected = at::linear(input, sequence_matrix(out, 4), sequence_vector(out, 7));
    EXPECT_TRUE(at::Tensor(layer.forward(input)).allclose(expected, 1e-6, 1e-3)) << "out " << out;
  }
}

TEST(MergedColumnParallel, EachRankHoldsItsPartOfEveryOutput) {
  const GroupCoordinator& group = testing::parallel_state(testing::world_size()).tp();
  MergedColumnParallelLinear layer(group, 3, {{"gate", 10}, {"up", 10}}, {.bias = false});
  testing::allocate(layer);
  Parameter& weight = layer.own_parameter("weight");
  load_section(weight, sequence_matrix(10, 3), "gate");
  load_section(weight, sequence_matrix(10, 3, 0.5), "up");
  const Range mine = DimPartition::of(10, group.size(), group.rank()).range;
  EXPECT_TRUE(
      weight.tensor.equal(at::cat({rows(sequence_matrix(10, 3), mine), rows(sequence_matrix(10, 3, 0.5), mine)})));
}

TEST(ColumnParallel, RefusesAnInputOfTheWrongWidth) {
  ColumnParallelLinear layer(testing::parallel_state(1).self(), 4, 2, {.bias = false});
  testing::allocate(layer);
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
