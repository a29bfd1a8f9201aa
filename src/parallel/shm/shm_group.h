#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headway/base/dtype.h"
#include "parallel/shm/shm_peers.h"
#include "parallel/shm/shm_wait.h"

namespace headway {

enum class CollectiveKind : uint8_t { barrier, all_reduce, all_gather, reduce_scatter, broadcast, all_to_all };

/// What a member says it is doing; all members must say the same.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::barrier;
  DType dtype = DType::U8;  ///< of a sum; U8 where bytes are only moved
  int16_t source = 0;       ///< group rank of the source of a broadcast
  uint64_t bytes = 0;       ///< of this member's tensor; 0 for all_to_all, where they differ
  friend bool operator==(const CollectiveCall&, const CollectiveCall&) = default;
};
/// "all_reduce of 3584 bytes of BF16"
std::string describe(const CollectiveCall& call);

/// The lock-step under the collectives: in each step every member writes into its own slot, says so, waits until all
/// have, and then reads the others' slots. Two slots per member are used in turn, so that a member may fill its next
/// slot while others still read its last one. To be used by one thread of a process at a time.
class ShmGroup {
 public:
  static constexpr int kMaxMembers = 64;
  /// The bytes that the steps of a group of that size take in a segment, and those of one slot.
  static size_t control_bytes(int members);
  static size_t slot_bytes(int members);

  /// Prepares zeroed memory for a group; once, before anyone uses it.
  static void construct(std::byte* control, int members);

  /// `control` and `slots` are offsets into the segment; a member's two slots follow each other, `slot_stride` bytes
  /// after those of the member before it.
  struct Place {
    size_t control = 0;
    size_t slots = 0;
    size_t slot_stride = 0;
  };
  ShmGroup(ShmPeers& peers, Place place, std::chrono::milliseconds timeout, SpinPolicy spinning);

  int size() const { return peers_.size(); }
  int self() const { return peers_.self(); }
  size_t slot_bytes() const { return slot_bytes_; }

  /// This member's slot for the next step. Throws CommunicationError if the group has failed.
  std::byte* begin_step(const CollectiveCall& call);
  /// Publishes the slot and waits for all members. Throws CommunicationError, after which the group is of no more use,
  /// naming the members that did not arrive in time, have died or left, or do something else.
  void meet(const CollectiveCall& call);
  /// A member's slot of the step just met, readable until this member meets again.
  const std::byte* slot_of(int group_rank) const;
  /// Makes the group useless for all members and throws CommunicationError.
  [[noreturn]] void fail(const CollectiveCall& call, const std::string& reason);

 private:
  struct Line;
  Line& line_of(int group_rank) const;  ///< of the step under way
  Signal& completion() const;
  bool has_arrived(int group_rank) const;
  std::vector<int> missing() const;
  void sleep_until_all_arrived(const CollectiveCall& call);
  void check_agreement(const CollectiveCall& call);

  ShmPeers& peers_;
  Place place_;
  std::chrono::milliseconds timeout_;
  SpinPolicy spinning_;
  size_t slot_bytes_;
  uint64_t step_ = 0;
};

}  // namespace headway
