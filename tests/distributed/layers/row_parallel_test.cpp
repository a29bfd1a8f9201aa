#include <ATen/ops/linear.h>
#include <gtest/gtest.h>

#include "distributed/layers/layer_support.h"
#include "distributed/support/parallel_test.h"
#include "headway/layers/attn_linear.h"
#include "headway/weights/weight_loader.h"

namespace headway {
namespace {

using testing::sequence_matrix;
using testing::sequence_vector;

at::Tensor local(const RowParallelLinear& layer, const at::Tensor& input) {
  return input.narrow(1, layer.local_columns().begin, layer.local_columns().size());
}

/// The groups for every size of the attention group that this world allows.
std::vector<const ParallelState*> all_states() {
  std::vector<const ParallelState*> states;
  for (int attn_tp : testing::divisors(testing::world_size())) states.push_back(&testing::parallel_state(attn_tp));
  return states;
}

// Fault case B01: the bias is added once. Wrong: [31, -23] on 2 ranks, [51, -63] on 4.
TEST(RowParallel, TheBiasIsAddedOnce) {
  for (const ParallelState* state : all_states()) {
    AttnRowParallelLinear layer(*state, {4, 2});
    testing::allocate(layer);
    load_section(layer.own_parameter("weight"), testing::values({1, 0, 2, 1, 0, 1, 1, 3}).view({2, 4}));
    load_section(layer.own_parameter("bias"), testing::values({10, -20}));
    const at::Tensor input = testing::values({1, 2, 3, 4}).view({1, 4});
    EXPECT_TRUE(at::Tensor(layer.forward(local(layer, input))).equal(testing::values({21, -3}).view({1, 2})));
  }
}

TEST(RowParallel, WholeHeadsAreCutAsTheQueryHeadsAre) {
  for (const ParallelState* state : all_states()) {
    for (const auto& [q, head_dim] : std::vector<std::pair<int64_t, int64_t>>{{9, 64}, {28, 4}, {14, 3}, {8, 1}}) {
      if (state->lm_head_tp().size() > q) continue;
      AttnRowParallelLinear layer(*state, {q * head_dim, 5, q}, {.bias = false});
      const Range heads = HeadPartition::of({q, q}, state->lm_head_tp().size(), state->lm_head_tp().rank()).q_heads;
      EXPECT_EQ(layer.local_columns(), (Range{heads.begin * head_dim, heads.end * head_dim}));
      testing::allocate(layer);
      const at::Tensor full = sequence_matrix(5, q * head_dim);
      load_section(layer.own_parameter("weight"), full);
      EXPECT_TRUE(layer.own_parameter("weight").tensor.equal(local(layer, full)));
    }
  }
}

TEST(RowParallel, SumsToTheUnshardedOutputForUnevenAndEmptyCuts) {
  for (const ParallelState* state : all_states()) {
    for (int64_t in : {1, 2, 3, 5, 6, 9, 130}) {
      const at::Tensor input = testing::random_matrix(3, in, 1);
      const at::Tensor weight = testing::random_matrix(4, in, 2);
      const at::Tensor bias = sequence_vector(4, 3);
      for (bool parallel_input : {true, false}) {
        AttnRowParallelLinear layer(*state, {in, 4}, {.input_is_parallel = parallel_input});
        testing::allocate(layer);
        load_section(layer.own_parameter("weight"), weight);
        load_section(layer.own_parameter("bias"), bias);
        const at::Tensor output = layer.forward(parallel_input ? local(layer, input) : input);
        EXPECT_TRUE(output.allclose(at::linear(input, weight, bias), 1e-5, 1e-5)) << "in " << in;
      }
    }
  }
}

TEST(RowParallel, ASkippedBiasIsHandedOutAndNotAdded) {
  for (const ParallelState* state : all_states()) {
    AttnRowParallelLinear layer(*state, {6, 2}, {.skip_bias_add = true});
    testing::allocate(layer);
    load_section(layer.own_parameter("weight"), sequence_matrix(2, 6));
    load_section(layer.own_parameter("bias"), testing::values({5, 6}));
    const at::Tensor input = sequence_matrix(1, 6);
    const LinearOutput result = layer.forward(local(layer, input));
    EXPECT_TRUE(result.output.allclose(at::linear(input, sequence_matrix(2, 6)), 1e-6, 1e-3));
    EXPECT_TRUE(result.bias.equal(testing::values({5, 6})));
  }
}

TEST(RowParallel, WithoutReductionEachRankReturnsItsPartialSum) {
  for (const ParallelState* state : all_states()) {
    AttnRowParallelLinear layer(*state, {6, 2}, {.bias = false, .reduce_results = false});
    testing::allocate(layer);
    load_section(layer.own_parameter("weight"), sequence_matrix(2, 6));
    const at::Tensor input = sequence_matrix(1, 6);
    const at::Tensor partial = layer.forward(local(layer, input));
    EXPECT_TRUE(partial.allclose(at::linear(local(layer, input), local(layer, sequence_matrix(2, 6))), 1e-6, 1e-3));
  }
}

TEST(RowParallel, RefusesABiasOnPartialSums) {
  for (const ParallelState* state : all_states()) {
    if (state->lm_head_tp().size() == 1) {
      EXPECT_NO_THROW(AttnRowParallelLinear(*state, {6, 2}, {.reduce_results = false}));
    } else {
      EXPECT_THROW(AttnRowParallelLinear(*state, {6, 2}, {.reduce_results = false}), ArgumentError);
    }
  }
}

}  // namespace
}  // namespace headway
