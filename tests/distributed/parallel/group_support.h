#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <vector>

#include "distributed/support/parallel_test.h"

namespace headway::testing {

/// A test over every attention group size, in the groups of that layout. Sizes that do not divide the number of ranks
/// are skipped.
class GroupTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override;

  /// tp (here the whole world), lm_head_tp and attn_dp of this rank, equal ones once.
  std::vector<const GroupCoordinator*> groups() const;
};

/// 1000 * rank + 0, 1, 2, ... in this shape, on the test's device.
at::Tensor numbered(const std::vector<int64_t>& shape, int64_t rank, at::ScalarType dtype = at::kFloat);

/// Whether dtype, shape and every element agree; on failure says where.
::testing::AssertionResult same(const at::Tensor& actual, const at::Tensor& expected);

}  // namespace headway::testing
