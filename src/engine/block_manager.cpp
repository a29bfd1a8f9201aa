#include "engine/block_manager.h"

#include <fmt/format.h>

#include "headway/base/error.h"

namespace headway {

BlockManager::BlockManager(int64_t total_blocks, int64_t block_size, PrefixHash hash)
    : block_size_(block_size), cache_(std::move(hash)) {
  if (total_blocks < 1 || block_size < 1) {
    throw ArgumentError(fmt::format("a KV cache of {} blocks of {} tokens cannot be", total_blocks, block_size));
  }
  users_.resize(total_blocks, 0);
  for (int64_t block = total_blocks - 1; block >= 0; --block) blank_.push_back(static_cast<int32_t>(block));
}

bool BlockManager::grow(BlockTable& table, int64_t tokens) {
  const int64_t missing = blocks_for(tokens) - static_cast<int64_t>(table.size());
  if (missing > free_blocks()) return false;
  for (int64_t i = 0; i < missing; ++i) table.push_back(take_free());
  return true;
}

int32_t BlockManager::take_free() {
  int32_t block = 0;
  if (!blank_.empty()) {
    block = blank_.back();
    blank_.pop_back();
  } else {
    block = unused_.front();
    unused_.pop_front();
    places_.erase(block);
    cache_.erase(block);
  }
  users_[block] = 1;
  return block;
}

std::span<const int32_t> BlockManager::tokens_of(std::span<const int32_t> tokens, int64_t block) const {
  return tokens.subspan(block * block_size_, block_size_);
}

KnownPrefix BlockManager::share_prefix(BlockTable& table, std::span<const int32_t> tokens) {
  KnownPrefix known;
  const int64_t full_blocks = static_cast<int64_t>(tokens.size()) / block_size_;
  while (known.blocks < full_blocks) {
    const auto entry = cache_.find(known.id, tokens_of(tokens, known.blocks));
    if (!entry) break;
    use_again(entry->block);
    table.push_back(entry->block);
    known = {known.blocks + 1, entry->id};
  }
  return known;
}

void BlockManager::use_again(int32_t block) {
  if (users_[block]++ > 0) return;
  const auto place = places_.find(block);
  unused_.erase(place->second);
  places_.erase(place);
}

void BlockManager::remember(const BlockTable& table, std::span<const int32_t> tokens, KnownPrefix& known) {
  const int64_t full_blocks = static_cast<int64_t>(tokens.size()) / block_size_;
  for (; known.blocks < full_blocks; ++known.blocks) {
    known.id = cache_.insert(known.id, tokens_of(tokens, known.blocks), table[known.blocks]);
  }
}

void BlockManager::release(BlockTable& table) {
  for (auto block = table.rbegin(); block != table.rend(); ++block) {
    if (*block < 0 || *block >= total_blocks() || users_[*block] == 0) {
      throw ArgumentError(fmt::format("KV block {} of {} is not in use", *block, total_blocks()));
    }
    if (--users_[*block] > 0) continue;
    if (cache_.knows(*block)) {
      places_[*block] = unused_.insert(unused_.end(), *block);
    } else {
      blank_.push_back(*block);
    }
  }
  table.clear();
}

}  // namespace headway
