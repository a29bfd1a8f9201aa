#include "e2e/paged_sequences.h"

#include <ATen/ops/tensor.h>

#include "headway/kernels/attention_batch.h"

namespace headway::testing {
namespace {

constexpr int64_t kCpuBlockSize = 16;
constexpr int64_t kCudaBlockSize = 256;

int64_t block_size_on(c10::Device device) {
  return device.is_cpu() ? kCpuBlockSize : kCudaBlockSize;
}

int64_t blocks_for(int64_t tokens, int64_t block_size) {
  return (tokens + block_size - 1) / block_size;
}

}  // namespace

PagedSequences::PagedSequences(CausalLM& model, int64_t sequences, int64_t longest)
    : model_(model),
      sequences_(sequences),
      blocks_per_sequence_(blocks_for(longest, block_size_on(model.device()))),
      lengths_(sequences, 0),
      caches_(model.allocate_kv_cache(sequences_ * blocks_per_sequence_, block_size_on(model.device()))) {}

std::vector<int32_t> PagedSequences::block_table(int64_t sequence, int64_t tokens) const {
  const int64_t blocks = sequences_ * blocks_per_sequence_;
  std::vector<int32_t> table(blocks_for(tokens, caches_.front().block_size()));
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<int32_t>(blocks - 1 - (static_cast<int64_t>(i) * sequences_ + sequence));
  }
  return table;
}

at::Tensor PagedSequences::forward(const std::vector<Chunk>& chunks) {
  const int64_t block_size = caches_.front().block_size();
  std::vector<int64_t> tokens;
  AttentionBatch batch;
  batch.query_starts.push_back(0);
  for (const auto& chunk : chunks) {
    int64_t& length = lengths_[chunk.sequence];
    const auto table = block_table(chunk.sequence, length + static_cast<int64_t>(chunk.tokens.size()));
    for (const int64_t token : chunk.tokens) {
      tokens.push_back(token);
      batch.positions.push_back(length);
      batch.slots.push_back(table[length / block_size] * block_size + length % block_size);
      ++length;
    }
    batch.query_starts.push_back(static_cast<int64_t>(tokens.size()));
    batch.context_lengths.push_back(length);
    batch.block_tables.push_back(table);
  }
  return model_.forward(at::tensor(tokens, at::kLong).to(model_.device()), batch, caches_);
}

at::Tensor PagedSequences::logits(const at::Tensor& hidden) {
  return model_.compute_logits(hidden).to(at::kCPU, at::kFloat);
}

at::Tensor PagedSequences::all_logits(const std::vector<Chunk>& chunks) {
  return logits(forward(chunks));
}

at::Tensor PagedSequences::last_logits(const std::vector<Chunk>& chunks) {
  std::vector<int64_t> last;
  int64_t end = 0;
  for (const auto& chunk : chunks) last.push_back((end += static_cast<int64_t>(chunk.tokens.size())) - 1);
  const at::Tensor hidden = forward(chunks);
  return logits(hidden.index_select(0, at::tensor(last, at::kLong).to(hidden.device())));
}

}  // namespace headway::testing
