#pragma once

#include <cstdint>
#include <string_view>

namespace headway {

enum class Collective { all_reduce, all_gather, reduce_scatter, all_to_all, gather, broadcast, barrier };
inline constexpr int kCollectives = 7;

/// "all_reduce", "all_gather", ...
std::string_view name_of(Collective kind);

/// What one rank has put into the collectives of one kind on one group.
struct CollectiveCount {
  int64_t calls = 0;
  int64_t bytes = 0;  ///< of the input tensors, before any padding
  friend bool operator==(const CollectiveCount&, const CollectiveCount&) = default;
};

}  // namespace headway
