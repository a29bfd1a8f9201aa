#include "distributed/parallel/group_support.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace headway::testing {

void GroupTest::SetUp() {
  if (world_size() % GetParam() != 0) GTEST_SKIP() << GetParam() << " does not divide " << world_size() << " ranks";
}

std::vector<const GroupCoordinator*> GroupTest::groups() const {
  const ParallelState& state = parallel_state(world_size(), GetParam());
  std::vector<const GroupCoordinator*> different;
  for (const GroupCoordinator* group : {&state.tp(), &state.lm_head_tp(), &state.attn_dp()}) {
    const auto same_ranks = [&](const GroupCoordinator* other) { return other->ranks() == group->ranks(); };
    if (std::none_of(different.begin(), different.end(), same_ranks)) different.push_back(group);
  }
  return different;
}

at::Tensor numbered(const std::vector<int64_t>& shape, int64_t rank, at::ScalarType dtype) {
  const int64_t elements = c10::multiply_integers(shape);
  return (at::arange(elements, at::kLong) + 1000 * rank).to(dtype).reshape(shape).to(device());
}

::testing::AssertionResult same(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.scalar_type() != expected.scalar_type()) {
    return ::testing::AssertionFailure() << "dtype is " << actual.scalar_type() << ", not " << expected.scalar_type();
  }
  if (actual.sizes() != expected.sizes()) {
    return ::testing::AssertionFailure() << "shape is " << actual.sizes() << ", not " << expected.sizes();
  }
  if (at::equal(actual.cpu(), expected.cpu())) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "is\n" << actual << "\nnot\n" << expected;
}

}  // namespace headway::testing
