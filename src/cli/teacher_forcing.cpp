#include "cli/teacher_forcing.h"

#include <ATen/ops/tensor.h>

#include <numeric>

#include "engine/step_input.h"

namespace headway {
namespace {

int64_t blocks_for(int64_t tokens, int64_t block_size) {
  return (tokens + block_size - 1) / block_size;
}

}  // namespace

TeacherForcing::TeacherForcing(CausalLM& model, int64_t tokens, int64_t block_size)
    : model_(model),
      block_size_(block_size),
      caches_(model.allocate_kv_cache(blocks_for(tokens, block_size), block_size)) {}

at::Tensor TeacherForcing::feed(const std::vector<int32_t>& tokens) {
  length_ += static_cast<int64_t>(tokens.size());
  BlockTable blocks(blocks_for(length_, block_size_));
  std::iota(blocks.begin(), blocks.end(), 0);
  StepInput step;
  step.sequences.push_back({tokens, length_, blocks, true});
  const at::Tensor ids = at::tensor(step.token_ids(), at::kLong).to(model_.device());
  const at::Tensor hidden = model_.forward(ids, step.attention_batch(block_size_), caches_);
  return model_.compute_logits(hidden).to(at::kCPU, at::kFloat);
}

at::Tensor TeacherForcing::keys(int64_t layer) const {
  return caches_[layer].keys.flatten(0, 1).narrow(0, 0, length_);
}

at::Tensor TeacherForcing::values(int64_t layer) const {
  return caches_[layer].values.flatten(0, 1).narrow(0, 0, length_);
}

}  // namespace headway
