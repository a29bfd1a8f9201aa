#pragma once

#include <ATen/core/Tensor.h>

#include "headway/kernels/attention_batch.h"
#include "kernels/ops.h"

// What every operator demands of its arguments, whatever the device. Each throws ArgumentError naming the operator,
// the argument and the shapes.
namespace headway::kernels {

/// Throws unless `tensor` is defined, has `dims` dimensions and a dtype that the kernels know (fp32, bf16, fp16).
void check_tensor(const char* op, const char* name, const at::Tensor& tensor, int64_t dims);

/// Throws unless `tensor` has the dtype and the device of `like`.
void check_same_kind(const char* op, const char* name, const at::Tensor& tensor, const at::Tensor& like);

/// Throws unless `tensor.size(dim)` is `expected`.
void check_size(const char* op, const char* name, const at::Tensor& tensor, int64_t dim, int64_t expected);

/// Throws unless every index of the batch lies inside itself and inside the cache.
void check_batch(const char* op, const AttentionBatch& batch, const KVCacheView& cache);

/// Throws unless the runs cover the query heads in order and name heads of the cache.
void check_runs(const char* op, const std::vector<HeadRun>& runs, int64_t q_heads, const KVCacheView& cache);

}  // namespace headway::kernels
