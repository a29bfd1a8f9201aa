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

  /// Posts what `self` was doing in the group called `group`, waits a short while for the other members' posts and
  /// returns them by group rank; nothing for those that posted none. Does not throw.
  virtual std::vector<std::optional<std::string>> exchange(const std::string& group, GroupRank self, int group_size,
                                                           const std::string& doing) = 0;
};

}  // namespace headway
