#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace headway {

/// One anonymous mapping in huge pages that holds all weights of a rank, so that decoding reads them at the speed of
/// the bus. Tensors made from it keep it alive.
class WeightArena : public std::enable_shared_from_this<WeightArena> {
 public:
  /// Reserves `bytes`; asks for huge pages and logs once if the system declines. Memory is touched only when written.
  static std::shared_ptr<WeightArena> create(int64_t bytes);
  ~WeightArena();
  WeightArena(const WeightArena&) = delete;
  WeightArena& operator=(const WeightArena&) = delete;

  /// The next tensor, 64-byte aligned and uninitialised. Throws ArgumentError when the arena is full.
  at::Tensor allocate(const std::vector<int64_t>& shape, c10::ScalarType dtype);

  /// Bytes that a tensor of that shape takes from an arena.
  static int64_t footprint(const std::vector<int64_t>& shape, c10::ScalarType dtype);

  bool huge_pages() const { return huge_pages_; }

 private:
  WeightArena(std::byte* base, int64_t bytes, bool huge_pages);
  std::byte* base_;
  int64_t bytes_;
  int64_t used_ = 0;
  bool huge_pages_;
};

}  // namespace headway
