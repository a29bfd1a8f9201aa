#pragma once

#include "kernels/cpu/simd/kernel_table.h"

namespace headway::kernels::simd {
namespace {

/// Pointers to the K and V rows of a tile of positions, as the block table scatters them.
template <typename T>
struct CachedRows {
  const T* keys[attention_tile];
  const T* values[attention_tile];

  /// Positions [begin, end), at most a tile; the rest of the tile repeats the last one.
  void find(const CachedHead& cache, int64_t begin, int64_t end) {
    int64_t block = begin / cache.block_size;
    int64_t offset = begin % cache.block_size;
    for (int64_t i = 0; i < end - begin; ++i) {
      const int64_t slot = cache.blocks[block] * cache.block_size + offset;
      keys[i] = static_cast<const T*>(cache.keys) + slot * cache.slot_stride;
      values[i] = static_cast<const T*>(cache.values) + slot * cache.slot_stride;
      if (++offset == cache.block_size) {
        ++block;
        offset = 0;
      }
    }
    for (int64_t i = end - begin; i < attention_tile; ++i) {
      keys[i] = keys[end - begin - 1];
      values[i] = values[end - begin - 1];
    }
  }
};

}  // namespace
}  // namespace headway::kernels::simd
