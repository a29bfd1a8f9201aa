#pragma once

#include "parallel/launch/rendezvous.h"
#include "parallel/store/failure_board.h"

namespace headway {

/// A failure board in the store of the job, under the key that its communicator has there.
class StoreFailureBoard : public FailureBoard {
 public:
  StoreFailureBoard(std::shared_ptr<Meeting> meeting, std::string key)
      : meeting_(std::move(meeting)), key_(std::move(key)) {}

  std::vector<std::optional<std::string>> exchange(const RankList& members, GlobalRank self,
                                                   const std::string& doing) override;

 private:
  std::shared_ptr<Meeting> meeting_;
  std::string key_;
};

}  // namespace headway
