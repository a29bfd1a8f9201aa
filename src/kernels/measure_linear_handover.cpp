#include <ATen/ops/ones.h>

#include "kernels/linear_way.h"
#include "kernels/ops.h"

namespace headway::kernels {
namespace {

int64_t& field_of(LinearHandover& handover, at::ScalarType dtype) {
  if (dtype == at::kFloat) return handover.fp32_tokens;
  return dtype == at::kBFloat16 ? handover.bf16_tokens : handover.fp16_tokens;
}

double seconds_of(LinearWay way, const at::Tensor& x, const at::Tensor& weight) {
  const ForcedLinearWay forced(way);
  return best_seconds([&] { linear(x, weight); });
}

}  // namespace

LinearHandover measure_linear_handover(const at::Tensor& weight) {
  LinearHandover result = linear_handover();
  int64_t& tokens = field_of(result, weight.scalar_type()) = INT64_MAX;
  for (int64_t candidate = 256; candidate >= 16; candidate /= 2) {
    const at::Tensor x = at::ones({candidate, weight.size(1)}, weight.options());
    if (seconds_of(LinearWay::gemm, x, weight) >= seconds_of(LinearWay::own, x, weight)) break;
    tokens = candidate;
  }
  return result;
}

}  // namespace headway::kernels
