#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cuda/cuda_ops.h"
#include "kernels/ops.h"

namespace headway::kernels {

/// Where the operators of a test run. The ATen operators that serve CUDA are also tried on CPU tensors, so that they
/// are tested where there is no GPU.
struct Backend {
  std::string name;
  at::Device device;
  bool aten_operators = false;

  at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {}) const {
    return aten_operators ? cuda::linear(x, weight, bias) : kernels::linear(x, weight, bias);
  }
  at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) const {
    return aten_operators ? cuda::rms_norm(x, weight, eps) : kernels::rms_norm(x, weight, eps);
  }
  at::Tensor add_rms_norm(const at::Tensor& x, at::Tensor& residual, const at::Tensor& weight, double eps) const {
    return aten_operators ? cuda::add_rms_norm(x, residual, weight, eps)
                          : kernels::add_rms_norm(x, residual, weight, eps);
  }
  at::Tensor silu_and_mul(const at::Tensor& gate_up) const {
    return aten_operators ? cuda::silu_and_mul(gate_up) : kernels::silu_and_mul(gate_up);
  }
  void rotary_embedding(at::Tensor heads, const at::Tensor& cos_sin, const std::vector<int64_t>& positions) const {
    aten_operators ? cuda::rotary_embedding(heads, cos_sin, positions)
                   : kernels::rotary_embedding(heads, cos_sin, positions);
  }
  void write_kv_cache(const at::Tensor& k, const at::Tensor& v, const KVCacheView& cache,
                      const AttentionBatch& batch) const {
    aten_operators ? cuda::write_kv_cache(k, v, cache, batch) : kernels::write_kv_cache(k, v, cache, batch);
  }
  at::Tensor paged_attention(const at::Tensor& q, const KVCacheView& cache, const AttentionBatch& batch,
                             const std::vector<HeadRun>& runs, const AttentionOptions& options) const {
    return aten_operators ? cuda::paged_attention(q, cache, batch, runs, options)
                          : kernels::paged_attention(q, cache, batch, runs, options);
  }
  at::Tensor embedding(const at::Tensor& ids, const at::Tensor& weight, Range rows) const {
    return aten_operators ? cuda::embedding(ids, weight, rows) : kernels::embedding(ids, weight, rows);
  }
};

/// The backends of this test binary.
std::vector<Backend> backends();

/// A grid over backends and dtypes. Skips, with the reason, where the device is missing.
class KernelTest : public testing::TestWithParam<std::tuple<Backend, at::ScalarType>> {
 protected:
  void SetUp() override;

  const Backend& backend() const { return std::get<0>(GetParam()); }
  at::ScalarType dtype() const { return std::get<1>(GetParam()); }
  at::TensorOptions options() const { return at::TensorOptions().dtype(dtype()).device(backend().device); }

  /// Distinct normal values, rounded to the dtype of the test.
  at::Tensor random(const std::vector<int64_t>& shape, double deviation = 1.0);
  /// Compares in fp64 with a tolerance that fits the dtype: of the value, and of `magnitude` around zero.
  void expect_close(const at::Tensor& actual, const at::Tensor& expected, double magnitude = 1.0) const;

 private:
  uint64_t seed_ = 0;
};

std::string name_of_case(const testing::TestParamInfo<KernelTest::ParamType>& info);

/// Gives a suite derived from KernelTest its grid.
inline auto all_backends() {
  return testing::Combine(testing::ValuesIn(backends()), testing::Values(at::kFloat, at::kBFloat16, at::kHalf));
}

/// For suites about Headway's own CPU kernels.
inline auto cpu_backend() {
  return testing::Combine(testing::Values(Backend{.name = "cpu", .device = at::kCPU}),
                          testing::Values(at::kFloat, at::kBFloat16, at::kHalf));
}

}  // namespace headway::kernels
