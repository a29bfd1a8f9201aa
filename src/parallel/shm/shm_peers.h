#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parallel/shm/shm_segment.h"
#include "parallel/shm/shm_setup.h"
#include "parallel/shm/shm_wait.h"

namespace headway {

/// The members around one shared segment: how long to wait for them, whether they live, and their common verdict once
/// one of them has given up.
class ShmPeers {
 public:
  ShmPeers(GroupMember member, std::vector<ProcessIdentity> processes, std::shared_ptr<SharedSegment> segment);

  const GroupMember& member() const { return member_; }
  int size() const { return member_.size(); }
  int self() const { return member_.self.value; }
  std::byte* data() const { return segment_->data(); }

  bool failed() const { return segment_->verdict().failed(); }
  /// Throws CommunicationError with the reason why the members gave up.
  [[noreturn]] void throw_verdict(const std::string& operation) const;
  /// Makes the segment useless for all members, for the first reason given, and throws this one.
  [[noreturn]] void fail(const std::string& operation, const std::string& reason) const;
  /// As fail, because the members in `missing` did not come within `limit`.
  [[noreturn]] void fail_absent(const std::string& operation, const std::vector<int>& missing,
                                std::chrono::milliseconds limit) const;
  /// Makes the segment useless for all members.
  void give_up(const std::string& reason) const { segment_->verdict().fail(reason); }
  /// As give_up, because this member is gone for good.
  void leave() const;

  /// Throws CommunicationError if the members have given up or one of `suspects` has died.
  void watch(const std::string& operation, const std::vector<int>& suspects);

  /// Sleeps on `signal` until `ready()`; false when `limit` has passed. Meanwhile watches the members that
  /// `suspects()` names.
  bool sleep(Signal& signal, const std::function<bool()>& ready, const std::function<std::vector<int>()>& suspects,
             std::optional<std::chrono::milliseconds> limit, const std::string& operation);

  std::string describe(const std::vector<int>& members) const;

 private:
  GroupMember member_;
  std::vector<ProcessIdentity> processes_;
  std::shared_ptr<SharedSegment> segment_;
  size_t next_suspect_ = 0;
};

}  // namespace headway
