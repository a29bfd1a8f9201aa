#include <gtest/gtest.h>

#include "distributed/layers/layer_support.h"
#include "distributed/support/parallel_test.h"
#include "headway/layers/attn_linear.h"
#include "headway/layers/vocab_parallel_embedding.h"
#include "headway/weights/weight_loader.h"

namespace headway {
namespace {

/// What one rank makes of the whole matrix: scales and int8 rows.
std::pair<at::Tensor, at::Tensor> whole(const at::Tensor& matrix) {
  const at::Tensor scales = matrix.abs().amax(1).div(127);
  const at::Tensor inverse = scales.reciprocal().masked_fill(scales.eq(0), 0);
  return {scales, matrix.mul(inverse.unsqueeze(1)).round().clamp(-127, 127).to(at::kChar)};
}

/// Rows of very different sizes, the largest value of each in a column of its own; one row is zero.
at::Tensor uneven_matrix(int64_t rows, int64_t columns) {
  at::Tensor matrix = testing::random_matrix(rows, columns, 5);
  for (int64_t row = 0; row < rows; ++row) {
    matrix[row][(7 * row + 3) % columns] = 11.0 + static_cast<double>(row);
    matrix[row].mul_(row == 1 ? 0.0 : 0.01 * static_cast<double>(row * row + 1));
  }
  return matrix;
}

class QuantizeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::parallel_state(1).device().is_cpu()) GTEST_SKIP() << "int8 weights are served on the CPU only";
  }
};

TEST_F(QuantizeTest, ARowHasTheSameScaleAndValuesHoweverItsColumnsAreCut) {
  for (int attn_tp : testing::divisors(testing::world_size())) {
    const ParallelState& state = testing::parallel_state(attn_tp);
    for (int64_t in : {1, 3, 9 * 16, 130}) {
      const at::Tensor matrix = uneven_matrix(5, in);
      const auto [scales, values] = whole(matrix);
      AttnRowParallelLinear layer(state, {in, 5}, {.bias = false});
      testing::allocate(layer);
      load_section(layer.own_parameter("weight"), matrix);
      quantize_to_int8(layer);
      const Parameter& weight = layer.own_parameter("weight");
      const Range columns = layer.local_columns();
      EXPECT_TRUE(weight.scales.equal(scales)) << "in " << in;
      EXPECT_TRUE(weight.tensor.equal(values.narrow(1, columns.begin, columns.size()))) << "in " << in;
      EXPECT_EQ(weight.int8_computes_in, at::kFloat);
      const at::Tensor input = testing::random_matrix(3, in, 2);
      const at::Tensor expected = input.matmul(values.to(at::kFloat).mul(scales.unsqueeze(1)).t());
      const at::Tensor output = layer.forward(input.narrow(1, columns.begin, columns.size()));
      EXPECT_TRUE(output.allclose(expected, 1e-4, 1e-4)) << "in " << in;
    }
  }
}

TEST_F(QuantizeTest, EmbeddingAndTiedHeadShareOneTable) {
  const ParallelState& state = testing::parallel_state(1);
  const at::Tensor matrix = uneven_matrix(13, 6);
  const auto [scales, values] = whole(matrix);
  const at::Tensor table = values.to(at::kFloat).mul(scales.unsqueeze(1));
  VocabParallelEmbedding embedding(state.tp(), 13, 6);
  ParallelLMHead head(embedding);
  testing::allocate(embedding);
  load_section(*embedding.weight(), matrix);
  quantize_to_int8(embedding);
  const at::Tensor ids = testing::sequence_vector(13).to(at::kLong);
  EXPECT_TRUE(embedding.forward(ids).allclose(table, 1e-6, 1e-6));
  const at::Tensor hidden = testing::random_matrix(2, 6, 8);
  EXPECT_TRUE(head.forward(hidden).allclose(hidden.matmul(table.t()), 1e-4, 1e-4));
}

TEST_F(QuantizeTest, BiasesStayAndBytesCountScales) {
  const ParallelState& state = testing::parallel_state(1);
  AttnRowParallelLinear layer(state, {8, 5});
  testing::allocate(layer);
  load_section(layer.own_parameter("weight"), uneven_matrix(5, 8));
  load_section(layer.own_parameter("bias"), testing::sequence_vector(5, 3));
  quantize_to_int8(layer);
  EXPECT_TRUE(layer.own_parameter("bias").tensor.equal(testing::sequence_vector(5, 3)));
  EXPECT_EQ(parameter_bytes(layer), 5 * layer.local_columns().size() + 5 * 4 + 5 * 4);
}

}  // namespace
}  // namespace headway
