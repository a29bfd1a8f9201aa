#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parallel/message/message_socket.h"
#include "parallel/shm/shm_setup.h"

namespace headway {

/// Messages from one member to others by TCP: the writer's side.
class StreamWriter {
 public:
  struct Reader {
    int group_rank;
    MessageSocket socket;
  };
  StreamWriter(GroupMember member, std::vector<Reader> readers, std::chrono::milliseconds timeout)
      : member_(std::move(member)), readers_(std::move(readers)), timeout_(timeout) {}

  /// Throws CommunicationError naming the reader that is gone or took nothing in time.
  void write(std::string_view message);
  /// Throws CommunicationError naming a reader that is gone.
  void check();
  /// Tells the readers why no more messages will come, and closes their connections.
  void give_up(std::string_view reason);
  /// As give_up, because this member is gone for good.
  void leave() { give_up(member_.describe(member_.self.value) + " has left the group"); }

 private:
  void throw_if_given_up() const;

  GroupMember member_;
  std::vector<Reader> readers_;
  std::chrono::milliseconds timeout_;
  std::string failure_;  ///< the first reason for giving up
};

/// The reader's side.
class StreamReader {
 public:
  StreamReader(GroupMember member, GroupRank writer, MessageSocket socket, std::chrono::milliseconds timeout)
      : member_(std::move(member)), writer_(writer), socket_(std::move(socket)), timeout_(timeout) {}

  /// Waits for as long as the connection holds, or at most `limit`, which throws CommunicationError and loses nothing.
  std::string read(std::optional<std::chrono::milliseconds> limit);
  void check();

 private:
  std::string read_frame();

  GroupMember member_;
  GroupRank writer_;
  MessageSocket socket_;
  std::chrono::milliseconds timeout_;
  std::string failure_;  ///< why the connection is of no more use
};

}  // namespace headway
