#pragma once

#include <cstdint>
#include <vector>

namespace headway {

/// The KV blocks of a sequence in order; `BlockTable[i]` holds its tokens [i * block_size, (i + 1) * block_size).
using BlockTable = std::vector<int32_t>;

/// Hands the blocks of the paged KV cache to sequences and takes them back. Knows ids only; the memory is the model
/// runner's, the same number of blocks on every rank.
class BlockManager {
 public:
  /// Throws ArgumentError unless both are positive.
  BlockManager(int64_t total_blocks, int64_t block_size);

  int64_t total_blocks() const { return static_cast<int64_t>(in_use_.size()); }
  int64_t free_blocks() const { return static_cast<int64_t>(free_.size()); }
  int64_t block_size() const { return block_size_; }
  int64_t total_tokens() const { return total_blocks() * block_size_; }
  int64_t blocks_for(int64_t tokens) const { return (tokens + block_size_ - 1) / block_size_; }

  /// Extends `table` until it holds `tokens` tokens. False, and nothing changes, if too few blocks are free.
  [[nodiscard]] bool grow(BlockTable& table, int64_t tokens);

  /// Takes all blocks of `table` back and empties it. Throws ArgumentError for a block that was not handed out.
  void release(BlockTable& table);

 private:
  int64_t block_size_;
  std::vector<int32_t> free_;  ///< the next one to hand out is the last
  std::vector<bool> in_use_;
};

}  // namespace headway
