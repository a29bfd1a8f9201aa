#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/prefix_cache.h"

namespace headway {

/// The KV blocks of a sequence in order; `BlockTable[i]` holds its tokens [i * block_size, (i + 1) * block_size).
using BlockTable = std::vector<int32_t>;

/// How far the blocks of a sequence are known to the prefix cache.
struct KnownPrefix {
  int64_t blocks = 0;
  PrefixId id = kNoPrefix;  ///< of the last of them
};

/// Hands the blocks of the paged KV cache to sequences and takes them back. Knows ids only; the memory is the model
/// runner's, the same number of blocks on every rank.
///
/// Full blocks can be made known by their contents. Sequences that begin alike then share them, and they keep their
/// contents when nobody uses them, until they are needed: the one that was given back first is taken first, and of one
/// sequence the last.
class BlockManager {
 public:
  /// Throws ArgumentError unless both are positive.
  BlockManager(int64_t total_blocks, int64_t block_size, PrefixHash hash = salted_prefix_hash());
  BlockManager(BlockManager&&) = default;  // what is kept by place would not survive a copy

  int64_t total_blocks() const { return static_cast<int64_t>(users_.size()); }
  /// Blocks that nobody uses, those with known contents among them.
  int64_t free_blocks() const { return static_cast<int64_t>(blank_.size() + unused_.size()); }
  int64_t block_size() const { return block_size_; }
  int64_t total_tokens() const { return total_blocks() * block_size_; }
  int64_t blocks_for(int64_t tokens) const { return (tokens + block_size_ - 1) / block_size_; }

  /// Extends `table` until it holds `tokens` tokens. False, and nothing changes, if too few blocks are free.
  [[nodiscard]] bool grow(BlockTable& table, int64_t tokens);

  /// Fills the empty `table` with known blocks that hold the beginning of `tokens`, as far as there are some.
  KnownPrefix share_prefix(BlockTable& table, std::span<const int32_t> tokens);

  /// Makes the full blocks of `table` known, which hold `tokens` and of which `known` are known already.
  void remember(const BlockTable& table, std::span<const int32_t> tokens, KnownPrefix& known);

  /// Gives all blocks of `table` back and empties it. Throws ArgumentError for a block that was not handed out.
  void release(BlockTable& table);

 private:
  int32_t take_free();
  void use_again(int32_t block);
  std::span<const int32_t> tokens_of(std::span<const int32_t> tokens, int64_t block) const;

  int64_t block_size_;
  std::vector<int32_t> users_;  ///< sequences that hold a block
  std::vector<int32_t> blank_;  ///< free and of unknown contents; the next one to hand out is the last
  std::list<int32_t> unused_;   ///< free and of known contents, in the order in which they were given back
  std::unordered_map<int32_t, std::list<int32_t>::iterator> places_;  ///< in `unused_`
  PrefixCache cache_;
};

}  // namespace headway
