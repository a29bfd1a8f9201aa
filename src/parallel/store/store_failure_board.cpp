#include "parallel/store/store_failure_board.h"

#include <fmt/format.h>

#include "parallel/store/job_store.h"

namespace headway {
namespace {

/// Members fail within milliseconds of each other, since the first to give up closes its connections.
constexpr std::chrono::milliseconds kWaitForPosts{1000};

}  // namespace

std::vector<std::optional<std::string>> StoreFailureBoard::exchange(const RankList& members, GlobalRank self,
                                                                    const std::string& doing) {
  std::vector<std::optional<std::string>> posts(members.size());
  const auto key = [&](GlobalRank rank) { return fmt::format("{}/failed/{}", key_, rank.value); };
  JobStore& store = meeting_->store();
  store.set(key(self), doing);
  const Deadline deadline = std::chrono::steady_clock::now() + kWaitForPosts;
  for (size_t i = 0; i < members.size(); ++i) {
    if (store.wait(key(members[i]), deadline)) posts[i] = store.get(key(members[i]));
  }
  return posts;
}

}  // namespace headway
