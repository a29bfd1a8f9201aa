#include "headway/parallel/group_coordinator.h"
#include "parallel/message/message_setup.h"

namespace headway {
namespace {

/// Everyone's text, passed on by one broadcast from each member.
StringExchange exchange_over(const GroupCoordinator& group) {
  return [&group](const std::string& own) {
    std::vector<std::string> all;
    for (int r = 0; r < group.size(); ++r) all.push_back(group.broadcast_object(own, GroupRank{r}));
    return all;
  };
}

}  // namespace

std::unique_ptr<MessageQueue> make_message_queue(const GroupCoordinator& group, GroupRank writer,
                                                 const MessageQueueOptions& options) {
  group.global_rank_of(writer);  // throws if it is not a member
  return make_message_queue(group.name(), {group.ranks(), group.rank()}, writer, options, exchange_over(group));
}

}  // namespace headway
