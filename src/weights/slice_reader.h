#pragma once

#include <cstdint>
#include <functional>

#include "weights/load_plan.h"

namespace headway {

/// Carries out planned copies: reads a slice piece by piece, so that no more than a few MiB of a file count as this
/// process's memory at any time.
class SliceReader {
 public:
  /// `on_read` is called with the bytes of every piece read.
  explicit SliceReader(std::function<void(int64_t bytes)> on_read) : on_read_(std::move(on_read)) {}

  void read(const PlannedCopy& copy) const;

 private:
  void read_into(const PlannedCopy& copy, const at::Tensor& target, int64_t offset) const;

  std::function<void(int64_t bytes)> on_read_;
};

}  // namespace headway
