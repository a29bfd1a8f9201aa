#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "headway/kernels/linear_handover.h"

namespace headway::kernels {

/// The two ways in which a linear can be computed on the CPU.
enum class LinearWay { own, gemm };

/// Has every linear go one way for as long as it lives.
class ForcedLinearWay {
 public:
  explicit ForcedLinearWay(LinearWay way) : before_(linear_handover()) {
    const int64_t tokens = way == LinearWay::gemm ? 1 : INT64_MAX;
    set_linear_handover({.fp32_tokens = tokens, .bf16_tokens = tokens, .fp16_tokens = tokens});
  }
  ~ForcedLinearWay() { set_linear_handover(before_); }
  ForcedLinearWay(const ForcedLinearWay&) = delete;
  ForcedLinearWay& operator=(const ForcedLinearWay&) = delete;

 private:
  const LinearHandover before_;
};

/// Seconds that the fastest of three calls takes, after one that warms up.
template <typename Work>
double best_seconds(const Work& work) {
  double best = 1e30;
  work();
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace headway::kernels
