#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "parallel/shm/shm_collectives.h"
#include "parallel/shm/shm_group.h"
#include "parallel/shm/shm_mail.h"
#include "parallel/shm/shm_peers.h"
#include "parallel/shm/shm_setup.h"

namespace headway {

struct ShmOptions {
  std::chrono::milliseconds timeout{60000};  ///< limit of each wait for other members
  int local_ranks = 1;                       ///< processes of the job on this host
};

/// One member's side of a group that talks through shared memory.
class ShmSession {
 public:
  struct Joined {
    std::unique_ptr<ShmSession> session;  ///< null if refused
    std::string refusal;                  ///< why, in the same words on every member
  };
  /// All members call it. Refuses if the group is too large, not on one host, or there is not enough memory.
  static Joined join(const GroupMember& member, const ShmOptions& options, const StringExchange& exchange);

  /// `segment` follows `plan`. Members that are threads of one process may share the object.
  ShmSession(GroupMember member, std::vector<ProcessIdentity> processes, std::shared_ptr<SharedSegment> segment,
             std::chrono::milliseconds timeout, SpinPolicy spinning);
  ~ShmSession();  ///< tells the others that this member has left
  ShmSession(const ShmSession&) = delete;
  ShmSession& operator=(const ShmSession&) = delete;

  static SegmentPlan plan(int members);

  ShmCollectives& collectives() { return collectives_; }
  ShmMail& mail() { return mail_; }
  int size() const { return peers_.size(); }
  int self() const { return peers_.self(); }

 private:
  ShmPeers peers_;
  ShmGroup group_;
  ShmCollectives collectives_;
  ShmMail mail_;
};

}  // namespace headway
