#include "unit/kernels/backend.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <random>

namespace headway::kernels {
namespace {

double relative_tolerance(at::ScalarType dtype) {
  if (dtype == at::kBFloat16) return 1.0 / 128;
  return dtype == at::kHalf ? 1.0 / 1024 : 1e-5;
}

}  // namespace

void KernelTest::SetUp() {
  if (backend().device.is_cuda() && !at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
}

at::Tensor KernelTest::random(const std::vector<int64_t>& shape, double deviation) {
  std::mt19937_64 generator(++seed_);
  std::normal_distribution<double> normal(0.0, deviation);
  const at::Tensor values = at::empty(shape, at::kDouble);
  double* data = values.mutable_data_ptr<double>();
  for (int64_t i = 0; i < values.numel(); ++i) data[i] = normal(generator);
  return values.to(options());
}

void KernelTest::expect_close(const at::Tensor& actual, const at::Tensor& expected, double magnitude) const {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  ASSERT_EQ(actual.scalar_type(), dtype());
  const at::Tensor left = actual.to(at::kCPU, at::kDouble).contiguous();
  const at::Tensor right = expected.to(at::kCPU, at::kDouble).contiguous();
  const double tolerance = relative_tolerance(dtype());
  int failures = 0;
  for (int64_t i = 0; i < left.numel() && failures < 5; ++i) {
    const double a = left.const_data_ptr<double>()[i], b = right.const_data_ptr<double>()[i];
    if (std::abs(a - b) <= tolerance * (std::abs(b) + magnitude)) continue;
    ADD_FAILURE() << "element " << i << " of " << left.numel() << " is " << a << ", expected " << b;
    ++failures;
  }
}

std::string name_of_case(const testing::TestParamInfo<KernelTest::ParamType>& info) {
  return std::get<0>(info.param).name + "_" + c10::toString(std::get<1>(info.param));
}

}  // namespace headway::kernels
