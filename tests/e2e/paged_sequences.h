#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "headway/models/causal_lm.h"

namespace headway::testing {

/// The next tokens of one sequence.
struct Chunk {
  int64_t sequence = 0;
  std::vector<int64_t> tokens;
};

/// Sequences that grow in the paged KV cache of a model. Their blocks lie scattered: neighbours in a sequence are not
/// neighbours in the cache, so that a block table that is ignored shows.
class PagedSequences {
 public:
  PagedSequences(CausalLM& model, int64_t sequences, int64_t longest);

  /// Runs the chunks in one forward; returns the logits of every token, [tokens, vocab] in fp32 on the host.
  at::Tensor all_logits(const std::vector<Chunk>& chunks);

  /// As all_logits, of each chunk's last token alone: [chunks, vocab].
  at::Tensor last_logits(const std::vector<Chunk>& chunks);

 private:
  at::Tensor forward(const std::vector<Chunk>& chunks);
  std::vector<int32_t> block_table(int64_t sequence, int64_t tokens) const;
  at::Tensor logits(const at::Tensor& hidden);

  CausalLM& model_;
  int64_t sequences_;
  int64_t blocks_per_sequence_;
  std::vector<int64_t> lengths_;
  std::vector<KVCacheView> caches_;
};

}  // namespace headway::testing
