#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "headway/parallel/ranks.h"

namespace headway {

class GroupCoordinator;

/// How the members of a message queue find and wait for each other.
struct MessageQueueOptions {
  std::chrono::milliseconds timeout{60000};  ///< limit of connecting, and of a reader that takes no messages
  std::string interface;                     ///< network interface towards other hosts; empty: any that works
  int local_ranks = 1;                       ///< processes of the job on this host
};

/// Messages from one member of a group, the writer, to all others: any number, of any length, in order, without the
/// group being in step. Members on the writer's host are reached through shared memory, others by TCP. To be used by
/// one thread of a process at a time. Once a member has died, left or failed, all others learn the reason from their
/// next call, or from the one they wait in.
class MessageQueue {
 public:
  virtual ~MessageQueue() = default;

  /// Sends a message to all readers; returns when it is on its way. Throws ArgumentError on a reader, and
  /// CommunicationError naming a reader that is gone or took nothing within the time limit.
  virtual void broadcast(std::string_view message) = 0;

  /// The next message; waits, without using the processor, for as long as the other members live. With a `limit`,
  /// throws CommunicationError when it has passed, and the queue stays as it was. Throws ArgumentError on the writer.
  virtual std::string receive(std::optional<std::chrono::milliseconds> limit = std::nullopt) = 0;

  /// Throws CommunicationError if the queue has failed or another member is known to be gone: for a writer that has
  /// nothing to send for long.
  virtual void check() = 0;
};

/// All members of the group call it. In a group of one messages go nowhere.
/// Throws CommunicationError, the same on all members, if one of them cannot be reached.
std::unique_ptr<MessageQueue> make_message_queue(const GroupCoordinator& group, GroupRank writer,
                                                 const MessageQueueOptions& options = {});

}  // namespace headway
