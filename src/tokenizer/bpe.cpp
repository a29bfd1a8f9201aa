#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <tuple>

#include "tokenizer/byte_level.h"

namespace headway {
namespace {

constexpr size_t kShortWord = 48;  // up to here a scan for the next merge beats a heap

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

MergeTable::MergeTable(const std::vector<Merge>& merges)
    : shift_(64 - std::bit_width(2 * merges.size() | 1)), slots_(size_t{1} << (64 - shift_)) {
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const uint64_t pair = pair_of(merges[rank].left, merges[rank].right);
    slot_of(pair) = {pair, {static_cast<int32_t>(rank), merges[rank].merged}};
  }
}

MergeTable::Slot& MergeTable::slot_of(uint64_t pair) {
  size_t index = home(pair);
  while (slots_[index].pair != pair && slots_[index].pair != UINT64_MAX) index = (index + 1) & (slots_.size() - 1);
  return slots_[index];
}

MergeTable::Result MergeTable::find(int32_t left, int32_t right) const {
  const uint64_t pair = pair_of(left, right);
  for (size_t index = home(pair);; index = (index + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[index];
    if (slot.pair == pair) return slot.result;
    if (slot.pair == UINT64_MAX) return {};
  }
}

BytePairEncoder::BytePairEncoder(const TokenizerDefinition& definition)
    : byte_ids_(definition.byte_ids), merges_(definition.merges) {
  if (!definition.ignore_merges) return;
  for (const auto& [token, id] : definition.vocabulary) whole_words_.emplace(bytes_of_token(token), id);
}

void BytePairEncoder::encode(std::string_view word, std::vector<int32_t>& ids) const {
  if (!whole_words_.empty()) {
    if (const auto whole = whole_words_.find(word); whole != whole_words_.end()) return ids.push_back(whole->second);
  }
  if (word.size() <= kShortWord) {
    encode_short(word, ids);
  } else {
    encode_long(word, ids);
  }
}

void BytePairEncoder::encode_short(std::string_view word, std::vector<int32_t>& ids) const {
  struct Symbol {
    int32_t id;
    MergeTable::Result merge;  // with the symbol after it
  };
  std::array<Symbol, kShortWord> symbols;
  size_t count = 0;
  for (const char c : word) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id >= 0) symbols[count++] = {id, {}};
  }
  const auto refresh = [&](size_t i) {
    symbols[i].merge = i + 1 < count ? merges_.find(symbols[i].id, symbols[i + 1].id) : MergeTable::Result{};
  };
  for (size_t i = 0; i < count; ++i) refresh(i);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i < count; ++i) {
      if (symbols[i].merge.rank < symbols[best].merge.rank) best = i;
    }
    if (symbols[best].merge.rank == MergeTable::kNone) break;
    symbols[best].id = symbols[best].merge.merged;
    std::copy(symbols.begin() + best + 2, symbols.begin() + count, symbols.begin() + best + 1);
    --count;
    refresh(best);
    if (best > 0) refresh(best - 1);
  }
  for (size_t i = 0; i < count; ++i) ids.push_back(symbols[i].id);
}

void BytePairEncoder::encode_long(std::string_view word, std::vector<int32_t>& ids) const {
  constexpr size_t kEnd = SIZE_MAX;
  struct Symbol {
    int32_t id;
    size_t previous;
    size_t next;
  };
  struct Candidate {
    int32_t rank;
    size_t position;
    int32_t left, right, merged;
    bool operator<(const Candidate& other) const {  // the queue's top is its largest
      return std::tie(rank, position) > std::tie(other.rank, other.position);
    }
  };
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  for (const char c : word) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id >= 0) symbols.push_back({id, symbols.size() - 1, symbols.size() + 1});  // the first one's previous is kEnd
  }
  if (symbols.empty()) return;
  symbols.back().next = kEnd;

  std::priority_queue<Candidate> queue;
  const auto offer = [&](size_t position) {
    if (position == kEnd || symbols[position].next == kEnd) return;
    const int32_t left = symbols[position].id;
    const int32_t right = symbols[symbols[position].next].id;
    const MergeTable::Result merge = merges_.find(left, right);
    if (merge.rank != MergeTable::kNone) queue.push({merge.rank, position, left, right, merge.merged});
  };
  for (size_t i = 0; i < symbols.size(); ++i) offer(i);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& left = symbols[top.position];
    if (left.id != top.left || left.next == kEnd || symbols[left.next].id != top.right) continue;  // out of date
    Symbol& right = symbols[left.next];
    left.id = top.merged;
    left.next = right.next;
    right.id = -1;
    if (left.next != kEnd) symbols[left.next].previous = top.position;
    offer(left.previous);
    offer(top.position);
  }
  for (size_t i = 0; i != kEnd; i = symbols[i].next) ids.push_back(symbols[i].id);
}

}  // namespace headway
