#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace headway {

/// A rank's number in the world.
struct GlobalRank {
  int value = 0;
  friend auto operator<=>(const GlobalRank&, const GlobalRank&) = default;
};

/// A rank's position in one group: its index in that group's list of global ranks.
struct GroupRank {
  int value = 0;
  friend auto operator<=>(const GroupRank&, const GroupRank&) = default;
};

/// The ranks of one group, in group order.
using RankList = std::vector<GlobalRank>;

}  // namespace headway
