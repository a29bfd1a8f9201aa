#include <cstring>

#include "kernels/cpu/cpu_ops.h"

namespace headway::kernels::cpu {
namespace {

void write(const at::Tensor& source, const at::Tensor& cache, const std::vector<int64_t>& slots) {
  const at::Tensor rows = source.stride(2) == 1 && source.stride(1) == source.size(2) ? source : source.contiguous();
  const int64_t element = static_cast<int64_t>(source.element_size());
  const int64_t row_bytes = source.size(1) * source.size(2) * element;
  const auto* from = static_cast<const std::byte*>(rows.const_data_ptr());
  auto* to = static_cast<std::byte*>(cache.mutable_data_ptr());
  for (size_t token = 0; token < slots.size(); ++token) {
    std::memcpy(to + slots[token] * row_bytes, from + static_cast<int64_t>(token) * rows.stride(0) * element,
                row_bytes);
  }
}

}  // namespace

void write_kv_cache(const at::Tensor& k, const at::Tensor& v, const KVCacheView& cache, const AttentionBatch& batch) {
  write(k, cache.keys, batch.slots);
  write(v, cache.values, batch.slots);
}

}  // namespace headway::kernels::cpu
