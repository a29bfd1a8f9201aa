#pragma once

#include <optional>

#include "kernels/ops.h"

namespace headway::kernels::cuda {

/// Paged attention by ATen's flash kernel, which reads the cache through the block table. Nothing if this build of
/// torch has no block table there, or the kernel does not take the case: it wants fp16 or bf16, blocks of a multiple
/// of 256 tokens, a head_dim of a multiple of 8 up to 256, and equally many query heads for every KV head.
std::optional<at::Tensor> flash_paged_attention(const at::Tensor& q, const KVCacheView& cache,
                                                const AttentionBatch& batch, const std::vector<HeadRun>& runs,
                                                const AttentionOptions& options);

}  // namespace headway::kernels::cuda
