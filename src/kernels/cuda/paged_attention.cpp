#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <algorithm>

#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/device_indices.h"
#include "kernels/cuda/flash_attention.h"

namespace headway::kernels::cuda {
namespace {

/// The part of a sequence's context that its new tokens may see.
struct Visible {
  at::Tensor keys;                 // [length, local_kv_heads, head_dim]
  at::Tensor values;               // the same
  std::optional<at::Tensor> mask;  // [new tokens, length]; nothing if all is seen
};

Visible gather(const KVCacheView& cache, const AttentionBatch& batch, int64_t sequence,
               const AttentionOptions& options) {
  const int64_t context = batch.context_lengths[sequence];
  const int64_t length = batch.query_length(sequence);
  const int64_t block_size = cache.block_size();
  const int64_t window = std::min(options.sliding_window.value_or(context), context);
  const int64_t first_block = std::max<int64_t>(0, context - length + 1 - window) / block_size;
  const int64_t end_block = (context + block_size - 1) / block_size;
  const auto& table = batch.block_tables[sequence];
  const at::Device device = cache.keys.device();
  const at::Tensor blocks =
      to_device(std::vector<int32_t>(table.begin() + first_block, table.begin() + end_block), device);
  const int64_t begin = first_block * block_size;
  Visible visible;
  visible.keys = cache.keys.index_select(0, blocks).flatten(0, 1).narrow(0, 0, context - begin);
  visible.values = cache.values.index_select(0, blocks).flatten(0, 1).narrow(0, 0, context - begin);
  if (length > 1 || window < context - begin) {
    const auto index_options = at::TensorOptions().dtype(at::kLong).device(device);
    const at::Tensor query = at::arange(context - length, context, index_options).unsqueeze(1);
    const at::Tensor key = at::arange(begin, context, index_options).unsqueeze(0);
    visible.mask = key.le(query).logical_and_(key.gt(query.sub(window)));
  }
  return visible;
}

/// Attention of the query heads of one KV head, folded into rows: q [tokens, heads, head_dim] -> the same shape.
at::Tensor attend(const at::Tensor& q, const Visible& visible, int64_t kv_head, double scale) {
  const int64_t heads = q.size(1);
  const at::Tensor rows = q.reshape({1, 1, q.size(0) * heads, q.size(2)});
  const at::Tensor keys = visible.keys.select(1, kv_head).unsqueeze(0).unsqueeze(0);
  const at::Tensor values = visible.values.select(1, kv_head).unsqueeze(0).unsqueeze(0);
  std::optional<at::Tensor> mask;
  if (visible.mask) mask = visible.mask->repeat_interleave(heads, 0).unsqueeze(0).unsqueeze(0);
  return at::scaled_dot_product_attention(rows, keys, values, mask, 0.0, /*is_causal=*/false, scale).view(q.sizes());
}

}  // namespace

at::Tensor paged_attention(const at::Tensor& q, const KVCacheView& cache, const AttentionBatch& batch,
                           const std::vector<HeadRun>& runs, const AttentionOptions& options) {
  if (auto output = flash_paged_attention(q, cache, batch, runs, options)) return *output;
  at::Tensor output = at::empty(q.sizes(), q.options());
  for (int64_t s = 0; s < batch.num_sequences(); ++s) {
    if (batch.query_length(s) == 0) continue;
    const Visible visible = gather(cache, batch, s, options);
    for (const HeadRun& run : runs) {
      if (run.q_heads.empty()) continue;
      const auto part = [&](const at::Tensor& tensor) {
        return tensor.narrow(0, batch.query_starts[s], batch.query_length(s))
            .narrow(1, run.q_heads.begin, run.q_heads.size());
      };
      part(output).copy_(attend(part(q), visible, run.kv_head, options.scale));
    }
  }
  return output;
}

}  // namespace headway::kernels::cuda
