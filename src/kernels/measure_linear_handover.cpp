#include <ATen/ops/ones.h>

#include <chrono>

#include "headway/kernels/linear_handover.h"
#include "kernels/ops.h"

namespace headway::kernels {
namespace {

int64_t& field_of(LinearHandover& handover, at::ScalarType dtype) {
  if (dtype == at::kFloat) return handover.fp32_tokens;
  return dtype == at::kBFloat16 ? handover.bf16_tokens : handover.fp16_tokens;
}

/// Sets the handover for the time of a measurement.
class Handover {
 public:
  Handover() : before_(linear_handover()) {}
  ~Handover() { set_linear_handover(before_); }
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  void set(at::ScalarType dtype, int64_t tokens) {
    LinearHandover handover = before_;
    field_of(handover, dtype) = tokens;
    set_linear_handover(handover);
  }

 private:
  const LinearHandover before_;
};

double best_seconds(const at::Tensor& x, const at::Tensor& weight) {
  double best = 1e30;
  linear(x, weight);
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    linear(x, weight);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

LinearHandover measure_linear_handover(const at::Tensor& weight) {
  const at::ScalarType dtype = weight.scalar_type();
  LinearHandover result = linear_handover();
  Handover handover;
  int64_t& tokens = field_of(result, dtype) = INT64_MAX;
  for (int64_t candidate = 256; candidate >= 16; candidate /= 2) {
    const at::Tensor x = at::ones({candidate, weight.size(1)}, weight.options());
    handover.set(dtype, INT64_MAX);
    const double own = best_seconds(x, weight);
    handover.set(dtype, 1);
    if (best_seconds(x, weight) >= own) break;
    tokens = candidate;
  }
  return result;
}

}  // namespace headway::kernels
