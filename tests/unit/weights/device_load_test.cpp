#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "unit/weights/loader_fixture.h"

namespace headway {
namespace {

TEST(DeviceLoad, ParametersOnADeviceAreFilledThroughTheHost) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  const test::Checkpoint checkpoint(
      {{"rows.weight", test::distinct(7, 5)}, {"columns.weight", test::distinct(3, 7, 0.5)}});
  const c10::Device device(c10::kCUDA, 0);
  const NamedParameter rows = test::allotted("rows.weight", {3, 5}, {{"", {7, 5}, 0, {4, 7}}}, c10::kFloat, device);
  const NamedParameter columns =
      test::allotted("columns.weight", {3, 2}, {{"", {3, 7}, 1, {5, 7}}}, c10::kBFloat16, device);
  EXPECT_EQ(checkpoint.load({rows, columns}).bytes_read, (3 * 5 + 3 * 2) * 4);
  EXPECT_TRUE(rows.parameter->tensor.is_cuda());
  EXPECT_TRUE(rows.parameter->tensor.cpu().equal(test::distinct(7, 5).narrow(0, 4, 3)));
  EXPECT_TRUE(columns.parameter->tensor.cpu().equal(test::distinct(3, 7, 0.5).narrow(1, 5, 2).to(c10::kBFloat16)));
}

}  // namespace
}  // namespace headway
