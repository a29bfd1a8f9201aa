#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headway/base/range.h"
#include "headway/parallel/ranks.h"
#include "parallel/shm/shm_segment.h"

namespace headway {

/// Gives every member's text to every member, in group order. All members must call it equally often.
using StringExchange = std::function<std::vector<std::string>(const std::string& own)>;

/// A group as one of its members sees it.
struct GroupMember {
  RankList ranks;
  GroupRank self;

  int size() const { return static_cast<int>(ranks.size()); }
  /// "group rank 1 (global rank 5)"
  std::string describe(int group_rank) const;
};

/// What the members of a group know of each other's place, in group order.
struct Introductions {
  std::vector<std::string> hosts;
  std::vector<ProcessIdentity> processes;
  bool oversubscribed = false;  ///< more processes of the job than processors on a host of the group

  bool single_host() const;
  bool same_host(int a, int b) const { return hosts[a] == hosts[b]; }
  std::string describe_hosts(const GroupMember& member) const;  ///< why the group is not on one host
};

/// All members call it. `local_ranks` is the number of the job's processes on this host. A member that cannot be
/// placed appears on a host of its own.
Introductions introduce(const GroupMember& member, int local_ranks, const StringExchange& exchange);

/// How a group's shared memory is laid out; equal on all members. Offsets count from the start of the data.
struct SegmentPlan {
  size_t bytes = 0;
  Range control;                                   ///< what the owner takes memory for ...
  std::function<void(std::byte* data)> construct;  ///< ... and prepares, before anyone else sees it
  std::function<Range(int group_rank)> part_of;    ///< what each member takes memory for, near itself
};

struct SharedSegmentResult {
  std::shared_ptr<SharedSegment> segment;  ///< null if refused
  std::string refusal;                     ///< the same text on every member
};

/// All members call it; `participates` tells whose memory is joined, and the owner is the first of them.
/// Either all participants get the segment, or all members the reason why there is none.
SharedSegmentResult share_segment(const GroupMember& member, const Introductions& introductions, GroupRank owner,
                                  const std::function<bool(int group_rank)>& participates, const SegmentPlan& plan,
                                  const StringExchange& exchange);

}  // namespace headway
