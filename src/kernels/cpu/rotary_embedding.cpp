#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/tensors.h"
#include "kernels/thread_pool.h"

namespace headway::kernels::cpu {
namespace {

void rotate(const at::Tensor& heads, const at::Tensor& cos_sin, const std::vector<int64_t>& positions) {
  const simd::KernelTable& kernels = kernels_for(heads.scalar_type());
  const int64_t half = heads.size(2) / 2;
  const float* table = cos_sin.const_data_ptr<float>();
  parallel_for(heads.size(0), 16384 / (heads.size(1) * heads.size(2) + 1) + 1, 1, [&](Range tokens) {
    for (int64_t token = tokens.begin; token < tokens.end; ++token) {
      const float* cos = table + positions[token] * 2 * half;
      for (int64_t head = 0; head < heads.size(1); ++head) {
        kernels.rotate_head(mutable_element_at(heads, token * heads.stride(0) + head * heads.stride(1)), cos,
                            cos + half, half);
      }
    }
  });
}

}  // namespace

void rotary_embedding(at::Tensor& heads, const at::Tensor& cos_sin, const std::vector<int64_t>& positions) {
  if (heads.stride(2) == 1) return rotate(heads, cos_sin, positions);
  const at::Tensor dense = heads.contiguous();
  rotate(dense, cos_sin, positions);
  heads.copy_(dense);
}

}  // namespace headway::kernels::cpu
