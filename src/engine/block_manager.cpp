#include "engine/block_manager.h"

#include <fmt/format.h>

#include "headway/base/error.h"

namespace headway {

BlockManager::BlockManager(int64_t total_blocks, int64_t block_size) : block_size_(block_size) {
  if (total_blocks < 1 || block_size < 1) {
    throw ArgumentError(fmt::format("a KV cache of {} blocks of {} tokens cannot be", total_blocks, block_size));
  }
  in_use_.resize(total_blocks, false);
  for (int64_t block = total_blocks - 1; block >= 0; --block) free_.push_back(static_cast<int32_t>(block));
}

bool BlockManager::grow(BlockTable& table, int64_t tokens) {
  const int64_t missing = blocks_for(tokens) - static_cast<int64_t>(table.size());
  if (missing > free_blocks()) return false;
  for (int64_t i = 0; i < missing; ++i) {
    table.push_back(free_.back());
    in_use_[free_.back()] = true;
    free_.pop_back();
  }
  return true;
}

void BlockManager::release(BlockTable& table) {
  for (const int32_t block : table) {
    if (block < 0 || block >= total_blocks() || !in_use_[block]) {
      throw ArgumentError(fmt::format("KV block {} of {} is not in use", block, total_blocks()));
    }
    in_use_[block] = false;
    free_.push_back(block);
  }
  table.clear();
}

}  // namespace headway
