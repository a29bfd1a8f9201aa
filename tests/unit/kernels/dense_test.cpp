#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "headway/base/error.h"
#include "kernels/linear_way.h"
#include "unit/kernels/backend.h"
#include "unit/kernels/reference.h"

namespace headway::kernels {
namespace {

class DenseOps : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Kernels, DenseOps, all_backends(), name_of_case);

TEST_P(DenseOps, LinearEqualsTheDefinition) {
  for (int64_t tokens : {1, 2, 3, 5, 8, 17, 33}) {
    for (auto [in, out] : {std::pair<int64_t, int64_t>{1, 1}, {7, 5}, {64, 64}, {131, 67}, {896, 29}}) {
      SCOPED_TRACE(testing::Message() << tokens << " x " << in << " -> " << out);
      const at::Tensor x = random({tokens, in}), weight = random({out, in}, 1 / std::sqrt(in)), bias = random({out});
      expect_close(backend().linear(x, weight), reference::linear(x, weight, {}), 2.0);
      expect_close(backend().linear(x, weight, bias), reference::linear(x, weight, bias), 2.0);
    }
  }
}

TEST_P(DenseOps, LinearTakesStridedRows) {
  const at::Tensor wide = random({3, 40}), weight = random({6, 24}, 0.2);
  const at::Tensor x = wide.narrow(1, 8, 24);
  expect_close(backend().linear(x, weight), reference::linear(x, weight, {}), 2.0);
}

TEST_P(DenseOps, LinearOverEmptyShards) {
  const at::Tensor bias = random({4});
  expect_close(kernels::linear(random({3, 0}), random({4, 0})), at::zeros({3, 4}));
  expect_close(kernels::linear(random({3, 0}), random({4, 0}), bias), bias.expand({3, 4}));
  EXPECT_EQ(kernels::linear(random({3, 5}), random({0, 5})).sizes(), at::IntArrayRef({3, 0}));
  EXPECT_EQ(kernels::linear(random({0, 5}), random({4, 5})).sizes(), at::IntArrayRef({0, 4}));
}

TEST_P(DenseOps, LinearNamesTheShapesThatDoNotFit) {
  try {
    kernels::linear(random({2, 5}), random({4, 6}));
    FAIL() << "accepted";
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(error.what(), "linear: weight has shape [4, 6]; dimension 1 must be 5");
  }
}

/// The matrix that an int8 weight stands for, in fp64.
at::Tensor values_of(const Int8Matrix& matrix) {
  return matrix.values.to(at::kDouble).mul(matrix.scales.to(at::kDouble).unsqueeze(1));
}

class Int8Ops : public KernelTest {
 protected:
  /// Every value from -127 to 127 comes up; rows have scales of their own.
  Int8Matrix random_int8(int64_t rows, int64_t columns) {
    const at::Tensor values = random({rows, columns}, 50).to(at::kFloat).round().clamp(-127, 127).to(at::kChar);
    const at::Tensor scales = random({rows}).to(at::kFloat).abs().add(0.2).clamp_max(1).div(50 * std::sqrt(columns));
    return {values, scales};
  }
};
INSTANTIATE_TEST_SUITE_P(Kernels, Int8Ops, cpu_backend(), name_of_case);

TEST_P(Int8Ops, LinearEqualsTheDefinition) {
  for (int64_t tokens : {1, 2, 3, 5, 8, 17, 33, 70}) {
    for (auto [in, out] : {std::pair<int64_t, int64_t>{1, 1}, {7, 5}, {64, 64}, {131, 67}, {896, 29}, {160, 301}}) {
      SCOPED_TRACE(testing::Message() << tokens << " x " << in << " -> " << out);
      const at::Tensor x = random({tokens, in}), bias = random({out});
      const Int8Matrix weight = random_int8(out, in);
      expect_close(kernels::linear(x, weight), reference::linear(x, values_of(weight), {}), 2.0);
      expect_close(kernels::linear(x, weight, bias), reference::linear(x, values_of(weight), bias), 2.0);
    }
  }
}

TEST_P(Int8Ops, BothWaysOfALinearAgree) {
  const at::Tensor x = random({40, 200}), bias = random({300});
  const Int8Matrix weight = random_int8(300, 200);
  for (const LinearWay way : {LinearWay::own, LinearWay::gemm}) {
    const ForcedLinearWay forced(way);
    expect_close(kernels::linear(x, weight, bias), reference::linear(x, values_of(weight), bias), 2.0);
  }
}

TEST_P(Int8Ops, LinearOverEmptyShards) {
  const at::Tensor bias = random({4});
  expect_close(kernels::linear(random({3, 0}), random_int8(4, 0), bias), bias.expand({3, 4}));
  EXPECT_EQ(kernels::linear(random({3, 5}), random_int8(0, 5)).sizes(), at::IntArrayRef({3, 0}));
}

TEST_P(Int8Ops, EmbeddingScalesRowsOfTheShard) {
  const Int8Matrix table = random_int8(6, 37);
  const at::Tensor ids = at::tensor(std::vector<int64_t>{12, 3, 9, 10, 9});
  const at::Tensor rows = kernels::embedding(ids, table, {9, 15}, dtype());
  EXPECT_EQ(rows.scalar_type(), dtype());
  const at::Tensor values = values_of(table);
  expect_close(rows[0], values[3]);
  EXPECT_EQ(rows[1].abs().max().item<double>(), 0);
  expect_close(rows[2], values[0]);
  expect_close(rows[3], values[1]);
  EXPECT_TRUE(at::equal(rows[4], rows[2]));
}

TEST_P(Int8Ops, RefusesWhatIsNoInt8Matrix) {
  const at::Tensor x = random({2, 5});
  Int8Matrix weight = random_int8(4, 5);
  EXPECT_THROW(kernels::linear(random({2, 6}), weight), ArgumentError);
  weight.scales = weight.scales.narrow(0, 0, 3);
  EXPECT_THROW(kernels::linear(x, weight), ArgumentError);
  EXPECT_THROW(kernels::linear(x, Int8Matrix{random({4, 5}), random({4}).to(at::kFloat)}), ArgumentError);
}

TEST_P(DenseOps, RmsNormEqualsTheDefinition) {
  for (int64_t hidden : {1, 2, 15, 64, 131, 896}) {
    for (int64_t tokens : {1, 2, 7}) {
      SCOPED_TRACE(testing::Message() << tokens << " x " << hidden);
      const at::Tensor x = random({tokens, hidden}, 3.0), weight = random({hidden});
      expect_close(backend().rms_norm(x, weight, 1e-6), reference::rms_norm(x, weight, 1e-6));
    }
  }
}

TEST_P(DenseOps, RmsNormCountsEpsilon) {
  const at::Tensor x = random({2, 33}, 1e-3), weight = random({33});
  expect_close(backend().rms_norm(x, weight, 1e-5), reference::rms_norm(x, weight, 1e-5));
}

TEST_P(DenseOps, AddRmsNormAddsInPlace) {
  for (int64_t hidden : {3, 64, 133}) {
    const at::Tensor x = random({3, hidden}), weight = random({hidden});
    at::Tensor residual = random({3, hidden});
    const at::Tensor sum = residual.to(at::kDouble).add(x.to(at::kDouble));
    const at::Tensor output = backend().add_rms_norm(x, residual, weight, 1e-6);
    expect_close(residual, sum, 0.0);
    expect_close(output, reference::rms_norm(residual, weight, 1e-6));
  }
}

TEST_P(DenseOps, SiluAndMulEqualsTheDefinition) {
  for (int64_t n : {0, 1, 5, 64, 133}) {
    for (int64_t tokens : {1, 4}) {
      const at::Tensor gate_up = random({tokens, 2 * n}, 4.0);
      expect_close(backend().silu_and_mul(gate_up), reference::silu_and_mul(gate_up), 1e-2);
    }
  }
}

TEST_P(DenseOps, SiluOfExtremesIsFinite) {
  at::Tensor gate_up = at::tensor({-200.0, 200.0, -90.0, 2.0, 3.0, 4.0}, at::kDouble).view({1, 6}).to(options());
  expect_close(backend().silu_and_mul(gate_up), at::tensor({0.0, 600.0, 0.0}, at::kDouble).view({1, 3}), 1e-6);
}

TEST_P(DenseOps, EmbeddingGivesZerosOutsideItsRows) {
  const at::Tensor weight = random({5, 9});
  const at::Tensor ids = at::tensor({12, 9, 14, 10, 15, -1, 0}, at::kLong).to(backend().device);
  const at::Tensor output = backend().embedding(ids, weight, {10, 15});
  at::Tensor expected = at::zeros({7, 9}, options());
  expected.select(0, 0).copy_(weight[2]);
  expected.select(0, 2).copy_(weight[4]);
  expected.select(0, 3).copy_(weight[0]);
  EXPECT_TRUE(at::equal(output, expected)) << output;
}

TEST_P(DenseOps, EmbeddingOfAnEmptyShardGivesZeros) {
  const at::Tensor ids = at::tensor({1, 2}, at::kLong).to(backend().device);
  EXPECT_TRUE(at::equal(backend().embedding(ids, random({0, 4}), {3, 3}), at::zeros({2, 4}, options())));
}

}  // namespace
}  // namespace headway::kernels
