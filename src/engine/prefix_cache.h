#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace headway {

/// Names the contents of a full KV block together with all that came before it; 0 is the beginning of every sequence.
/// No two contents ever have the same one.
using PrefixId = uint64_t;
constexpr PrefixId kNoPrefix = 0;

/// Where to look for a block that follows `prefix` and holds `tokens`.
using PrefixHash = std::function<uint64_t(PrefixId prefix, std::span<const int32_t> tokens)>;

/// A hash with a secret of this process in it, so that nobody can choose prompts that collide.
PrefixHash salted_prefix_hash();

/// Which KV blocks hold what. The hash only says where to look: a block is found if its tokens and its prefix are the
/// same, never because hashes are.
class PrefixCache {
 public:
  explicit PrefixCache(PrefixHash hash) : hash_(std::move(hash)) {}

  struct Entry {
    PrefixId id = kNoPrefix;
    int32_t block = 0;
  };

  /// The block that holds `tokens` after `prefix`, if one is known.
  std::optional<Entry> find(PrefixId prefix, std::span<const int32_t> tokens) const;

  /// Makes `block` known as the one that holds `tokens` after `prefix`, unless another one is. The id of the contents.
  PrefixId insert(PrefixId prefix, std::span<const int32_t> tokens, int32_t block);

  bool knows(int32_t block) const { return places_.contains(block); }
  void erase(int32_t block);

 private:
  struct Contents {
    PrefixId prefix;
    std::vector<int32_t> tokens;
    Entry entry;
  };
  using Places = std::unordered_multimap<uint64_t, Contents>;

  PrefixHash hash_;
  PrefixId last_id_ = kNoPrefix;
  Places contents_;                                       ///< by hash
  std::unordered_map<int32_t, Places::iterator> places_;  ///< by block
};

}  // namespace headway
