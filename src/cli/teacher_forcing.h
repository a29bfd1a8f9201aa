#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "headway/models/causal_lm.h"

namespace headway {

/// One sequence whose tokens are given. Every rank feeds the same ones.
class TeacherForcing {
 public:
  /// Allots a cache for `tokens` tokens.
  TeacherForcing(CausalLM& model, int64_t tokens, int64_t block_size);

  /// The logits after each of the next tokens, [tokens, vocab_size] fp32 on the host.
  at::Tensor feed(const std::vector<int32_t>& tokens);

  int64_t length() const { return length_; }
  at::Tensor keys(int64_t layer) const;    ///< of all tokens so far, [tokens, local_kv_heads, head_dim]
  at::Tensor values(int64_t layer) const;  ///< likewise

 private:
  CausalLM& model_;
  int64_t block_size_;
  int64_t length_ = 0;
  std::vector<KVCacheView> caches_;
};

}  // namespace headway
