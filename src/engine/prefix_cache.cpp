#include "engine/prefix_cache.h"

#include <algorithm>
#include <random>

namespace headway {
namespace {

/// The finaliser of splitmix64: every bit of `value` reaches every bit of the result.
uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

}  // namespace

PrefixHash salted_prefix_hash() {
  std::random_device device;
  const uint64_t salt = uint64_t{device()} << 32 | device();
  return [salt](PrefixId prefix, std::span<const int32_t> tokens) {
    uint64_t hash = mix(salt ^ prefix);
    for (const int32_t token : tokens) hash = mix(hash ^ static_cast<uint32_t>(token)) + salt;
    return hash;
  };
}

std::optional<PrefixCache::Entry> PrefixCache::find(PrefixId prefix, std::span<const int32_t> tokens) const {
  const auto [begin, end] = contents_.equal_range(hash_(prefix, tokens));
  const auto found = std::find_if(begin, end, [&](const Places::value_type& place) {
    return place.second.prefix == prefix && std::ranges::equal(place.second.tokens, tokens);
  });
  if (found == end) return std::nullopt;
  return found->second.entry;
}

PrefixId PrefixCache::insert(PrefixId prefix, std::span<const int32_t> tokens, int32_t block) {
  if (const auto known = find(prefix, tokens)) return known->id;
  Contents contents{prefix, {tokens.begin(), tokens.end()}, {++last_id_, block}};
  places_.emplace(block, contents_.emplace(hash_(prefix, tokens), std::move(contents)));
  return last_id_;
}

void PrefixCache::erase(int32_t block) {
  const auto place = places_.find(block);
  contents_.erase(place->second);
  places_.erase(place);
}

}  // namespace headway
