#pragma once

#include "kernels/ops.h"

// The operators of ops.h for tensors in main memory. Arguments have been checked by ops.cpp.
namespace headway::kernels::cpu {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor linear(const at::Tensor& x, const Int8Matrix& weight, const at::Tensor& bias);
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);
at::Tensor add_rms_norm(const at::Tensor& x, at::Tensor& residual, const at::Tensor& weight, double eps);
at::Tensor silu_and_mul(const at::Tensor& gate_up);
void rotary_embedding(at::Tensor& heads, const at::Tensor& cos_sin, const std::vector<int64_t>& positions);
void write_kv_cache(const at::Tensor& k, const at::Tensor& v, const KVCacheView& cache, const AttentionBatch& batch);
at::Tensor paged_attention(const at::Tensor& q, const KVCacheView& cache, const AttentionBatch& batch,
                           const std::vector<HeadRun>& runs, const AttentionOptions& options);
at::Tensor embedding(const at::Tensor& ids, const at::Tensor& weight, Range rows);
at::Tensor embedding(const at::Tensor& ids, const Int8Matrix& weight, Range rows, at::ScalarType dtype);

}  // namespace headway::kernels::cpu
