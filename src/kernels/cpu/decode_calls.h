#pragma once

#include <memory>
#include <vector>

#include "kernels/cpu/simd/kernel_table.h"

namespace headway::kernels::cpu {

/// Decode calls that one thread makes in turn, with all that they point to.
class DecodeCalls {
 public:
  /// Room for packed queries, which lasts as long as this object.
  float* room_for_q(int64_t floats) {
    packed_.push_back(std::make_unique_for_overwrite<float[]>(floats));
    return packed_.back().get();
  }

  void add_run(const simd::DecodeRun& run) { runs_.push_back(run); }

  /// Adds a call whose runs are the last `call.run_count` added.
  void add(const simd::DecodeCall& call) { calls_.push_back(call); }

  /// Tells every call its runs and the one that follows.
  const std::vector<simd::DecodeCall>& link() {
    int64_t run = 0;
    for (size_t i = 0; i < calls_.size(); ++i) {
      calls_[i].runs = &runs_[run];
      run += calls_[i].run_count;
      calls_[i].begins_cached = i > 0;
      calls_[i].next = i + 1 < calls_.size() ? &calls_[i + 1] : nullptr;
    }
    return calls_;
  }

 private:
  std::vector<std::unique_ptr<float[]>> packed_;
  std::vector<simd::DecodeRun> runs_;
  std::vector<simd::DecodeCall> calls_;
};

}  // namespace headway::kernels::cpu
