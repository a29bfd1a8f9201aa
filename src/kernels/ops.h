#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "headway/base/range.h"
#include "headway/kernels/attention_batch.h"
#include "headway/parallel/partition.h"

// The operators of the models, one plain function each. CPU tensors take Headway's own kernels (chosen at run time by
// what the processor has) or ATen; CUDA tensors take ATen. Rows are tokens; weights are [out, in], row-major.
namespace headway::kernels {

/// y = x W^T (+ bias): x [tokens, in], weight [out, in], bias [out] -> [tokens, out]. fp32 sums.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

/// A matrix [out, in] in int8: row r stands for scales[r] * values[r].
struct Int8Matrix {
  at::Tensor values;
  at::Tensor scales;  ///< [out] fp32
};

/// The same for a weight in int8; on the CPU only.
at::Tensor linear(const at::Tensor& x, const Int8Matrix& weight, const at::Tensor& bias = {});

/// y = x / sqrt(mean(x^2) + eps) * weight, the mean in fp32: x [tokens, hidden].
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

/// residual += x (in place), then rms_norm(residual).
at::Tensor add_rms_norm(const at::Tensor& x, at::Tensor& residual, const at::Tensor& weight, double eps);

/// silu(gate) * up: gate_up [tokens, 2 * n] with gate in the first n columns -> [tokens, n].
at::Tensor silu_and_mul(const at::Tensor& gate_up);

/// Rotates the halves of every head in place (NeoX style): heads [tokens, n, head_dim] (rows may be strided),
/// cos_sin [positions, head_dim] fp32 with cosines in the first half; positions index its rows.
void rotary_embedding(at::Tensor heads, const at::Tensor& cos_sin, const std::vector<int64_t>& positions);

/// Writes the K and V of every token, [tokens, local_kv_heads, head_dim] each, to its slot.
void write_kv_cache(const at::Tensor& k, const at::Tensor& v, const KVCacheView& cache, const AttentionBatch& batch);

struct AttentionOptions {
  double scale = 1.0;                          ///< multiplies q . k
  std::optional<int64_t> sliding_window = {};  ///< a token sees itself and the window - 1 tokens before it
};

/// Causal attention over the paged cache: q [tokens, local_q_heads, head_dim] -> the same shape. `runs` says which
/// query heads read which KV head; they need not be even. Softmax in fp32.
at::Tensor paged_attention(const at::Tensor& q, const KVCacheView& cache, const AttentionBatch& batch,
                           const std::vector<HeadRun>& runs, const AttentionOptions& options);

/// Rows of a vocabulary shard: ids [tokens] int64, weight [rows, hidden]; ids outside `rows` give zeros.
at::Tensor embedding(const at::Tensor& ids, const at::Tensor& weight, Range rows);

/// The same for a table in int8, as `dtype`; on the CPU only.
at::Tensor embedding(const at::Tensor& ids, const Int8Matrix& weight, Range rows, at::ScalarType dtype);

}  // namespace headway::kernels
