#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "headway/models/causal_lm.h"

namespace headway::testing {

constexpr int64_t kFakeVocab = 97;

/// The logits that follow `tokens`: a hash of all of them, in order.
std::vector<float> fake_logits(const std::vector<int32_t>& tokens);

/// A model whose only memory is the paged KV cache: it stores every token id in its slot and reads its whole context
/// back through the block table, so that a wrong slot, block or position changes the logits.
class FakeModel : public CausalLM {
 public:
  explicit FakeModel(std::vector<int64_t> eos_token_ids = {});

  at::Tensor forward(const at::Tensor& token_ids, const AttentionBatch& batch,
                     std::vector<KVCacheView>& caches) override;
  at::Tensor compute_logits(const at::Tensor& hidden) override;
  CheckpointNames checkpoint_names() const override { return {}; }

  struct Call {
    std::vector<int64_t> token_ids;
    int64_t logit_rows = 0;
  };
  std::vector<Call> calls;         ///< what every step asked for
  int64_t poisoned_sequence = -1;  ///< a sequence of this length gets logits that are no numbers

 private:
  void show_streams(const at::Tensor& hidden) const;
};

}  // namespace headway::testing
