#pragma once

#include "kernels/cpu/simd/kernel_table.h"

namespace headway::kernels::simd {
namespace {

/// Pointers to the slots of a tile of positions, as the block table scatters them.
template <typename T, int64_t Tile>
class SlotPointers {
 public:
  /// Positions [begin, end), at most a tile; the rest of the tile repeats the last one.
  void find(const CachedContext& cache, int64_t begin, int64_t end) {
    int64_t block = begin / cache.block_size;
    int64_t offset = begin % cache.block_size;
    for (int64_t i = 0; i < Tile; ++i) {
      const int64_t element = (cache.blocks[block] * cache.block_size + offset) * cache.slot_stride;
      slots_[i] = static_cast<const T*>(cache.keys) + element;
      slots_[Tile + i] = static_cast<const T*>(cache.values) + element;
      if (begin + i + 1 >= end) continue;
      if (++offset == cache.block_size) {
        ++block;
        offset = 0;
      }
    }
  }

  const T* const* keys() const { return slots_; }
  const T* const* values() const { return slots_ + Tile; }
  /// The keys and, after them, the values.
  const T* const* keys_and_values() const { return slots_; }

 private:
  const T* slots_[2 * Tile];
};

/// Asks for the K rows of a tile and then for its V rows, at the steps of the work on the tile before: in the order in
/// which they lie in memory, which is what memory is fastest at, and spread over the work.
template <class V, typename T, int64_t Tile>
class RowPrefetch {
 public:
  RowPrefetch() = default;
  /// Of every slot, `elements` from `offset` on; all within `steps` calls of step().
  RowPrefetch(const SlotPointers<T, Tile>& slots, int64_t offset, int64_t elements, int64_t steps)
      : rows_(slots.keys_and_values()),
        offset_(offset * static_cast<int64_t>(sizeof(T))),
        row_bytes_(elements * static_cast<int64_t>(sizeof(T))),
        rows_left_(2 * Tile),
        rows_per_step_((2 * Tile + steps - 1) / steps),
        steps_per_row_(steps / (2 * Tile)) {}

  __attribute__((always_inline)) void step() {
    if (rows_left_ == 0 || --wait_ > 0) return;
    wait_ = steps_per_row_;
    for (int64_t i = 0; i < rows_per_step_ && rows_left_ > 0; ++i, --rows_left_, ++rows_) {
      const char* row = reinterpret_cast<const char*>(*rows_) + offset_;
      for (int64_t byte = 0; byte < row_bytes_; byte += 64) V::prefetch(row + byte);
    }
  }

 private:
  const T* const* rows_ = nullptr;
  int64_t offset_ = 0;
  int64_t row_bytes_ = 0;
  int64_t rows_left_ = 0;
  int64_t rows_per_step_ = 0;
  int64_t steps_per_row_ = 0;  // one row at every so many steps, or several at each
  int64_t wait_ = 0;
};

}  // namespace
}  // namespace headway::kernels::simd
