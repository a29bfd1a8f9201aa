#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/element.h"

namespace headway::kernels::cpu {
namespace {

template <typename T>
void rotate_head(T* head, int64_t stride, const float* cos, const float* sin, int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    T& first = head[i * stride];
    T& second = head[(half + i) * stride];
    const float a = first, b = second;
    first = static_cast<T>(a * cos[i] - b * sin[i]);
    second = static_cast<T>(b * cos[i] + a * sin[i]);
  }
}

}  // namespace

void rotary_embedding(at::Tensor& heads, const at::Tensor& cos_sin, const std::vector<int64_t>& positions) {
  const int64_t head_dim = heads.size(2);
  const float* table = cos_sin.const_data_ptr<float>();
  with_element(heads.scalar_type(), [&]<typename T>(T) {
    T* data = heads.mutable_data_ptr<T>();
    for (int64_t token = 0; token < heads.size(0); ++token) {
      const float* cos = table + positions[token] * head_dim;
      for (int64_t head = 0; head < heads.size(1); ++head) {
        rotate_head(data + token * heads.stride(0) + head * heads.stride(1), heads.stride(2), cos, cos + head_dim / 2,
                    head_dim / 2);
      }
    }
  });
}

}  // namespace headway::kernels::cpu
