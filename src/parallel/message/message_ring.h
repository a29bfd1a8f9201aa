#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/shm/shm_peers.h"
#include "parallel/shm/shm_wait.h"

namespace headway {

/// Messages of any length from one member to others on its host, through a ring of slots in shared memory. A message
/// longer than a slot is passed slot by slot, and the writer waits for readers only when the ring is full.
class MessageRing {
 public:
  static constexpr size_t kSlots = 32;
  static constexpr size_t kSlotBytes = 16 << 10;

  static SegmentPlan plan(int members);

  /// `readers` are group ranks. Members that are threads of one process may share the segment object.
  MessageRing(GroupMember member, std::vector<ProcessIdentity> processes, std::shared_ptr<SharedSegment> segment,
              GroupRank writer, std::vector<int> readers, std::chrono::milliseconds timeout, SpinPolicy spinning);
  ~MessageRing();  ///< tells the others that this member has left
  MessageRing(const MessageRing&) = delete;
  MessageRing& operator=(const MessageRing&) = delete;

  /// Throws CommunicationError naming the readers that took nothing in time, died or left; the ring is then useless.
  void write(std::string_view message);

  /// Waits for as long as all members live, or for at most `limit`, which throws CommunicationError and leaves the
  /// ring as it was. If a message cannot be taken (no memory for it), it is lost and the next one can be read.
  std::string read(std::optional<std::chrono::milliseconds> limit);

  /// Throws CommunicationError if the ring is useless or another member has died.
  void check();
  /// Makes the ring useless for all members.
  void give_up(const std::string& reason) const;

 private:
  struct Slot;
  Signal& head() const;                ///< counts the slots filled, modulo 2^32
  Signal& tail(int group_rank) const;  ///< counts the slots that a reader has given back
  Slot& slot(uint32_t number) const;
  void wait_for_room(uint32_t number, size_t bytes);
  void wait_for_reader(int reader, uint32_t number, size_t bytes);
  void wait_for_slot(std::optional<std::chrono::milliseconds> limit, bool within_message);
  std::vector<int> others() const;

  ShmPeers peers_;
  GroupRank writer_;
  std::vector<int> readers_;
  std::chrono::milliseconds timeout_;
  SpinPolicy spinning_;
  uint32_t room_until_ = kSlots;  ///< slots up to this number are known to be free
};

}  // namespace headway
