#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "headway/parallel/ranks.h"
#include "parallel/shm/shm_peers.h"
#include "parallel/shm/shm_wait.h"

namespace headway {

/// Point-to-point messages between the members of a group. Each sender has two envelopes for its pieces to whichever
/// receiver, so a message of up to two pieces is sent before anyone receives it, and a longer one as it is received.
class ShmMail {
 public:
  static constexpr size_t kEnvelopeBytes = 64 << 10;
  static constexpr size_t kEnvelopes = 2;

  static size_t control_bytes(int members);
  static void construct(std::byte* control, int members);

  /// Offsets into the segment; a member's envelopes follow each other, `envelope_stride` bytes after those of the
  /// member before it.
  struct Place {
    size_t control = 0;
    size_t envelopes = 0;
    size_t envelope_stride = 0;
  };
  ShmMail(ShmPeers& peers, Place place, std::chrono::milliseconds timeout, SpinPolicy spinning);

  /// Messages between two members arrive in the order sent. Throws CommunicationError naming the peer; a tag or size
  /// that is not the other side's makes the group useless.
  void send(const void* data, size_t bytes, GroupRank destination, int tag);
  void receive(void* data, size_t bytes, GroupRank source, int tag);

 private:
  struct Letter;
  struct Box;
  /// Which piece to whom was last put into an envelope.
  struct Use {
    int destination = -1;
    uint32_t piece = 0;
  };
  Box& box(int sender, int receiver) const;
  std::byte* envelope(int sender, size_t index) const;
  void wait(Signal& signal, uint32_t at_least, int peer, const char* verb, size_t bytes, int tag);
  void check(const Letter& letter, size_t bytes, int source, int tag);

  ShmPeers& peers_;
  Place place_;
  std::chrono::milliseconds timeout_;
  SpinPolicy spinning_;
  size_t sent_ = 0;  ///< pieces, to all
  Use uses_[kEnvelopes];
};

}  // namespace headway
