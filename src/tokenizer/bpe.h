#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/definition.h"

namespace headway {

/// The merges of a vocabulary as a hash table with open addressing.
class MergeTable {
 public:
  static constexpr int32_t kNone = INT32_MAX;

  struct Result {
    int32_t rank = kNone;
    int32_t merged = -1;
  };

  explicit MergeTable(const std::vector<Merge>& merges);

  /// The merge of two neighbours; rank kNone if they do not merge.
  Result find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t pair = UINT64_MAX;
    Result result;
  };

  size_t home(uint64_t pair) const { return pair * 0x9E3779B97F4A7C15u >> shift_; }
  Slot& slot_of(uint64_t pair);

  int shift_;
  std::vector<Slot> slots_;  // a power of two, at most half full
};

/// Byte-pair encoding (Sennrich et al., https://arxiv.org/abs/1508.07909) on the bytes of a word: the merge of the
/// lowest rank first, and of equal ones the leftmost.
class BytePairEncoder {
 public:
  explicit BytePairEncoder(const TokenizerDefinition& definition);

  /// Appends the ids of `word`.
  void encode(std::string_view word, std::vector<int32_t>& ids) const;

 private:
  void encode_short(std::string_view word, std::vector<int32_t>& ids) const;
  void encode_long(std::string_view word, std::vector<int32_t>& ids) const;

  std::array<int32_t, 256> byte_ids_;
  MergeTable merges_;
  TokenIds whole_words_;  // by bytes; empty unless the merges are ignored for them
};

}  // namespace headway
