#include <ATen/ops/empty.h>

#include <cmath>

#include "headway/base/error.h"
#include "unit/kernels/backend.h"
#include "unit/kernels/reference.h"

namespace headway::kernels {
namespace {

at::Tensor cos_sin_table(int64_t positions, int64_t head_dim) {
  at::Tensor table = at::empty({positions, head_dim}, at::kFloat);
  auto row = table.accessor<float, 2>();
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t i = 0; i < head_dim / 2; ++i) {
      const double angle = static_cast<double>(p) * std::pow(1e4, -2.0 * static_cast<double>(i) / head_dim);
      row[p][i] = static_cast<float>(std::cos(angle));
      row[p][head_dim / 2 + i] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

class Rotary : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Kernels, Rotary, all_backends(), name_of_case);

TEST_P(Rotary, RotatesStridedHeadsInPlace) {
  for (int64_t head_dim : {2, 6, 16, 64, 80}) {
    const at::Tensor table = cos_sin_table(400, head_dim);
    const at::Tensor projected = random({3, 5 * head_dim});
    at::Tensor heads = projected.narrow(1, head_dim, 3 * head_dim).view({3, 3, head_dim});
    const at::Tensor untouched = projected.narrow(1, 4 * head_dim, head_dim).clone();
    const std::vector<int64_t> positions = {0, 399, 7};
    const at::Tensor expected = reference::rotary_embedding(heads, table, positions);
    backend().rotary_embedding(heads, table.to(backend().device), positions);
    expect_close(heads, expected, 0.5);
    EXPECT_TRUE(projected.narrow(1, 4 * head_dim, head_dim).equal(untouched));
  }
}

// Fault case D06.
TEST_P(Rotary, AnglesAreNotRoundedToTheModelDtype) {
  const at::Tensor table = cos_sin_table(15963, 4).to(backend().device);
  at::Tensor heads = at::empty({2, 1, 4}, options());
  heads.fill_(0);
  heads.select(2, 0).fill_(1);
  backend().rotary_embedding(heads, table, {257, 15962});
  EXPECT_NEAR(heads[0][0][0].item<double>(), 0.8193, 4e-3);
  EXPECT_NEAR(heads[1][0][0].item<double>(), -0.9080, 4e-3);
}

TEST_P(Rotary, RefusesPositionsOutsideTheTable) {
  const at::Tensor table = cos_sin_table(4, 4).to(backend().device);
  EXPECT_THROW(kernels::rotary_embedding(random({1, 1, 4}), table, {4}), ArgumentError);
  EXPECT_THROW(kernels::rotary_embedding(random({1, 1, 4}), table, {-1}), ArgumentError);
}

}  // namespace
}  // namespace headway::kernels
