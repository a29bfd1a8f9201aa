#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace headway::kernels {

/// Reads a buffer with all threads of this rank, as fast as the machine lets them: the limit of decoding.
class ReadBandwidth {
 public:
  /// A buffer of `bytes` in huge pages; it should be several times the last-level cache.
  explicit ReadBandwidth(int64_t bytes);

  /// Bytes per second of one pass over the buffer.
  double measure();

 private:
  at::Tensor buffer_;
};

}  // namespace headway::kernels
