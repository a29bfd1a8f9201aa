#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "parallel/shm/shm_session.h"

namespace headway::testing {

/// An all-gather of strings between processes forked from the one that made it.
class ForkExchange {
 public:
  explicit ForkExchange(int members);
  ~ForkExchange();
  ForkExchange(const ForkExchange&) = delete;
  ForkExchange& operator=(const ForkExchange&) = delete;

  /// For one member; each round of the exchange waits at most ten seconds for the others.
  StringExchange of(int group_rank);
  /// A shared counter that starts at zero, for tests that need an order between members.
  std::atomic<int>& counter();

 private:
  struct Memory;
  Memory* memory_;
  int members_;
};

/// What one forked member came to.
struct Outcome {
  std::string failure;  ///< what it threw; empty if it ended well
  int signal = 0;       ///< that ended it
  double seconds = 0;   ///< from the start of all to its end
};

/// The member's body: ends by returning, by throwing (the text becomes its failure), or by a signal.
using MemberBody = std::function<void(const GroupMember& member, const StringExchange& exchange)>;

/// Runs `body` in a process per member, each ended by SIGALRM after `limit_seconds`. `parent`, if given, runs
/// meanwhile with the process numbers. The global ranks are 10 more than the group ranks.
std::vector<Outcome> run_members(ForkExchange& exchange, int members, const MemberBody& body, int limit_seconds = 20,
                                 const std::function<void(const std::vector<pid_t>&)>& parent = {});

/// As above with a session for each. `steps` starts at zero and is shared by all.
using SessionBody = std::function<void(ShmSession& session, std::atomic<int>& steps)>;
std::vector<Outcome> run_sessions(int members, const ShmOptions& options, const SessionBody& body,
                                  int limit_seconds = 20,
                                  const std::function<void(const std::vector<pid_t>&)>& parent = {});

/// Until the shared counter has come to `count`; bounded by the alarm of the process.
void wait_for(const std::atomic<int>& steps, int count);

/// Counts a step when it goes out of scope, however that happens.
struct StepAtEnd {
  std::atomic<int>& steps;
  ~StepAtEnd() { ++steps; }
};

/// Throws with the text unless it holds.
void require(bool holds, const std::string& text);

/// That all members ended well.
void expect_all_well(const std::vector<Outcome>& outcomes);

GroupMember member_of(int members, int group_rank);

/// An all-reduce of fp32 ones.
void all_reduce_ones(ShmSession& session, int64_t elements);

/// What lies in /dev/shm, in alphabetical order.
std::vector<std::string> files_in_shared_memory_folder();

}  // namespace headway::testing
