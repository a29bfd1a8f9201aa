#pragma once

#include "parallel/launch/rendezvous.h"
#include "parallel/store/failure_board.h"

namespace headway {

/// A failure board in the store of the job.
class StoreFailureBoard : public FailureBoard {
 public:
  explicit StoreFailureBoard(std::shared_ptr<Meeting> meeting) : meeting_(std::move(meeting)) {}

  std::vector<std::optional<std::string>> exchange(const std::string& group, const RankList& members, GlobalRank self,
                                                   const std::string& doing) override;

 private:
  std::shared_ptr<Meeting> meeting_;
};

}  // namespace headway
