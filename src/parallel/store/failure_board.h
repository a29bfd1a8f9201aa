#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headway/parallel/ranks.h"

namespace headway {

/// Where the members of one communicator tell each other, after its first failure, which operation they were in. A
/// communicator that has failed is of no more use: members no longer agree on what has been sent. Groups that share a
/// communicator share its board.
class FailureBoard {
 public:
  virtual ~FailureBoard() = default;

  /// Posts what this rank was doing, waits a short while for the other members' posts and returns them by group rank;
  /// nothing for those that posted none. Called once, at the first failure. Throws LaunchError where the members cannot
  /// be asked.
  virtual std::vector<std::optional<std::string>> exchange(const RankList& members, GlobalRank self,
                                                           const std::string& doing) = 0;

  /// What later operations are refused with; empty while nothing has failed.
  const std::string& first_failure() const { return first_failure_; }
  void record(std::string failure) { first_failure_ = std::move(failure); }

 private:
  std::string first_failure_;
};

}  // namespace headway
