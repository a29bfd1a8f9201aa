#include "kernels/cuda/flash_attention.h"

#include <ATen/ops/_flash_attention_forward.h>

#include <algorithm>

#include "kernels/cuda/device_indices.h"

namespace headway::kernels::cuda {
namespace {

bool is_uniform(const std::vector<HeadRun>& runs, int64_t kv_heads) {
  if (static_cast<int64_t>(runs.size()) != kv_heads) return false;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].kv_head != static_cast<int64_t>(i) || runs[i].q_heads.size() != runs[0].q_heads.size()) return false;
  }
  return true;
}

bool is_supported(const at::Tensor& q, const KVCacheView& cache, const std::vector<HeadRun>& runs) {
  const bool half_precision = q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16;
  return q.is_cuda() && half_precision && cache.block_size() % 256 == 0 && q.size(2) % 8 == 0 && q.size(2) <= 256 &&
         is_uniform(runs, cache.keys.size(2));
}

struct Lengths {
  at::Tensor query_starts;
  at::Tensor context_starts;
  at::Tensor contexts;
  at::Tensor block_table;  // [sequences, blocks of the longest], int32
  int64_t longest_query = 0;
  int64_t longest_context = 0;
};

Lengths lengths_of(const AttentionBatch& batch, int64_t block_size, const at::Device& device) {
  Lengths lengths;
  std::vector<int32_t> query_starts(batch.query_starts.begin(), batch.query_starts.end());
  std::vector<int32_t> contexts(batch.context_lengths.begin(), batch.context_lengths.end());
  std::vector<int32_t> context_starts = {0};
  for (int64_t s = 0; s < batch.num_sequences(); ++s) {
    context_starts.push_back(context_starts.back() + contexts[s]);
    lengths.longest_query = std::max(lengths.longest_query, batch.query_length(s));
    lengths.longest_context = std::max(lengths.longest_context, batch.context_lengths[s]);
  }
  const int64_t width = (lengths.longest_context + block_size - 1) / block_size;
  std::vector<int32_t> table(batch.num_sequences() * width, 0);
  for (int64_t s = 0; s < batch.num_sequences(); ++s) {
    const auto& blocks = batch.block_tables[s];
    std::copy_n(blocks.begin(), std::min<int64_t>(blocks.size(), width), table.begin() + s * width);
  }
  lengths.query_starts = to_device(query_starts, device);
  lengths.context_starts = to_device(context_starts, device);
  lengths.contexts = to_device(contexts, device);
  lengths.block_table = to_device(table, device).view({batch.num_sequences(), width});
  return lengths;
}

// A template, so that a torch whose operator has no block table leaves the first branch out.
template <typename Tensor>
std::optional<at::Tensor> call_flash(const Tensor& q, const KVCacheView& cache, const Lengths& lengths,
                                     const AttentionOptions& options) {
  const std::optional<at::Tensor> none;
  const auto forward = [&](const auto& tensor) -> std::optional<at::Tensor> {
    if constexpr (requires {
                    at::_flash_attention_forward(tensor, tensor, tensor, none, none, 0, 0, 0.0, true, false,
                                                 std::optional<double>(), std::optional<int64_t>(),
                                                 std::optional<int64_t>(), none, none, none);
                  }) {
      std::optional<int64_t> left;
      if (options.sliding_window) left = *options.sliding_window - 1;
      return std::get<0>(at::_flash_attention_forward(
          tensor, cache.keys, cache.values, std::optional<at::Tensor>(lengths.query_starts),
          std::optional<at::Tensor>(lengths.context_starts), lengths.longest_query, lengths.longest_context, 0.0,
          /*is_causal=*/!left.has_value(), /*return_debug_mask=*/false, std::optional<double>(options.scale), left,
          left ? std::optional<int64_t>(0) : std::optional<int64_t>(), std::optional<at::Tensor>(lengths.contexts),
          none, std::optional<at::Tensor>(lengths.block_table)));
    } else {
      return std::nullopt;
    }
  };
  return forward(q);
}

}  // namespace

std::optional<at::Tensor> flash_paged_attention(const at::Tensor& q, const KVCacheView& cache,
                                                const AttentionBatch& batch, const std::vector<HeadRun>& runs,
                                                const AttentionOptions& options) {
  if (!is_supported(q, cache, runs)) return std::nullopt;
  return call_flash(q, cache, lengths_of(batch, cache.block_size(), q.device()), options);
}

}  // namespace headway::kernels::cuda
