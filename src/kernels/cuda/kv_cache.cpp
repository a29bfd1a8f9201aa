#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/device_indices.h"

namespace headway::kernels::cuda {

void write_kv_cache(const at::Tensor& k, const at::Tensor& v, const KVCacheView& cache, const AttentionBatch& batch) {
  const at::Tensor slots = to_device(batch.slots, k.device());
  cache.keys.flatten(0, 1).index_copy_(0, slots, k);
  cache.values.flatten(0, 1).index_copy_(0, slots, v);
}

}  // namespace headway::kernels::cuda
