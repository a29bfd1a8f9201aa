#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "headway/parallel/message_queue.h"
#include "parallel/message/message_stream.h"
#include "parallel/shm/shm_setup.h"

namespace headway {

/// All members call it. Readers on the writer's host are reached through shared memory, those on other hosts by TCP.
/// `group_name` appears in errors. Throws CommunicationError, the same on all members, if one cannot be reached.
std::unique_ptr<MessageQueue> make_message_queue(const std::string& group_name, const GroupMember& member,
                                                 GroupRank writer, const MessageQueueOptions& options,
                                                 const StringExchange& exchange);

/// The writer's connections to `readers`, or this reader's to the writer.
struct StreamEnds {
  std::vector<StreamWriter::Reader> to_readers;
  std::vector<MessageSocket> to_writer;  ///< one or none
};

/// All members of the group call it. Throws CommunicationError, the same on all members, unless all `readers` are
/// connected within the options' limit.
StreamEnds connect_streams(const GroupMember& member, GroupRank writer, const std::vector<int>& readers,
                           const MessageQueueOptions& options, const StringExchange& exchange);

}  // namespace headway
