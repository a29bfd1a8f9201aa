#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace headway::kernels::cpu {

/// Floats that a thread reuses from call to call, 64-byte aligned. Growing drops what was there.
class Scratch {
 public:
  float* floats(int64_t count) {
    if (count > capacity_) {
      const int64_t bytes = (count * static_cast<int64_t>(sizeof(float)) + 4095) / 4096 * 4096;
      memory_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
      capacity_ = bytes / static_cast<int64_t>(sizeof(float));
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  std::unique_ptr<float, Free> memory_;
  int64_t capacity_ = 0;
};

}  // namespace headway::kernels::cpu
