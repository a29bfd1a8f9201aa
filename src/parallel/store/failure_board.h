#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headway/parallel/ranks.h"

namespace headway {

/// Where the members of a group tell each other, after a failure, which collective they were in.
class FailureBoard {
 public:
  virtual ~FailureBoard() = default;

  /// Posts what this rank was doing in a group, waits a short while for the other members' posts and returns them by
  /// group rank; nothing for those that posted none. Does not throw.
  virtual std::vector<std::optional<std::string>> exchange(const std::string& group, const RankList& members,
                                                           GlobalRank self, const std::string& doing) = 0;
};

}  // namespace headway
