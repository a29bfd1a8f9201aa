#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/element.h"

namespace headway::kernels::cpu {
namespace {

/// Where the tokens of a sequence lie in the cache, for one KV head.
template <typename T>
class CacheRows {
 public:
  CacheRows(const at::Tensor& cache, const std::vector<int32_t>& blocks, int64_t kv_head)
      : data_(cache.const_data_ptr<T>() + kv_head * cache.size(3)),
        blocks_(blocks),
        block_size_(cache.size(1)),
        row_(cache.size(2) * cache.size(3)) {}

  const T* operator[](int64_t position) const {
    return data_ + (blocks_[position / block_size_] * block_size_ + position % block_size_) * row_;
  }

 private:
  const T* data_;
  const std::vector<int32_t>& blocks_;
  int64_t block_size_;
  int64_t row_;
};

template <typename T>
void attend(const T* q, const CacheRows<T>& keys, const CacheRows<T>& values, Range seen, int64_t head_dim,
            double scale, T* output) {
  std::vector<float> weights(seen.size());
  float largest = -INFINITY;
  for (int64_t t = seen.begin; t < seen.end; ++t) {
    float score = 0;
    for (int64_t d = 0; d < head_dim; ++d) score += static_cast<float>(q[d]) * static_cast<float>(keys[t][d]);
    weights[t - seen.begin] = score * static_cast<float>(scale);
    largest = std::max(largest, weights[t - seen.begin]);
  }
  float sum = 0;
  for (float& weight : weights) sum += weight = std::exp(weight - largest);
  std::vector<float> result(head_dim, 0.0f);
  for (int64_t t = seen.begin; t < seen.end; ++t) {
    for (int64_t d = 0; d < head_dim; ++d) result[d] += weights[t - seen.begin] * static_cast<float>(values[t][d]);
  }
  for (int64_t d = 0; d < head_dim; ++d) output[d] = static_cast<T>(result[d] / sum);
}

}  // namespace

at::Tensor paged_attention(const at::Tensor& q, const KVCacheView& cache, const AttentionBatch& batch,
                           const std::vector<HeadRun>& runs, const AttentionOptions& options) {
  at::Tensor output = at::empty(q.sizes(), q.options());
  const at::Tensor rows = with_dense_rows(q);
  with_element(q.scalar_type(), [&]<typename T>(T) {
    for (int64_t s = 0; s < batch.num_sequences(); ++s) {
      for (const HeadRun& run : runs) {
        const CacheRows<T> keys(cache.keys, batch.block_tables[s], run.kv_head);
        const CacheRows<T> values(cache.values, batch.block_tables[s], run.kv_head);
        for (int64_t token = batch.query_starts[s]; token < batch.query_starts[s + 1]; ++token) {
          const int64_t end = batch.context_lengths[s] - (batch.query_starts[s + 1] - token) + 1;
          const Range seen = {std::max<int64_t>(0, end - options.sliding_window.value_or(end)), end};
          for (int64_t head = run.q_heads.begin; head < run.q_heads.end; ++head) {
            attend(rows.const_data_ptr<T>() + token * rows.stride(0) + head * rows.stride(1), keys, values, seen,
                   q.size(2), options.scale,
                   output.mutable_data_ptr<T>() + token * output.stride(0) + head * output.stride(1));
          }
        }
      }
    }
  });
  return output;
}

}  // namespace headway::kernels::cpu
