#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/json.h"
#include "headway/base/error.h"
#include "parallel/message/message_setup.h"

namespace headway {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// How long one try at an address, or a stranger's connection, may hold up the others.
constexpr milliseconds kTryLimit{1000};

/// What a reader says first, and the writer answers.
struct Greeting {
  uint64_t token = 0;
  int64_t group_rank = 0;
};

struct Offer {
  std::unique_ptr<MessageListener> listener = nullptr;
  uint64_t token = 0;
  std::string text = {};
};

Offer make_offer(const std::string& interface) {
  try {
    Offer offer{.listener = std::make_unique<MessageListener>()};
    std::random_device device;
    offer.token = uint64_t{device()} << 32 | device();
    offer.text = dump_json(
        Json{{"port", offer.listener->port()}, {"token", offer.token}, {"addresses", own_addresses(interface)}});
    return offer;
  } catch (const CommunicationError& error) {
    return {.text = dump_json(Json{{"error", error.what()}})};
  }
}

milliseconds left_until(Clock::time_point deadline) {
  return std::max(milliseconds{0}, std::chrono::ceil<milliseconds>(deadline - Clock::now()));
}

/// The group rank that a new connection belongs to, or -1 if it is none of ours.
int greet(MessageSocket& socket, uint64_t token, const std::vector<int>& awaited) {
  try {
    Greeting greeting;
    socket.receive(&greeting, sizeof(greeting), kTryLimit);
    const bool known = std::find(awaited.begin(), awaited.end(), greeting.group_rank) != awaited.end();
    if (greeting.token != token || !known) return -1;
    socket.send(&greeting, sizeof(greeting), kTryLimit);
    return static_cast<int>(greeting.group_rank);
  } catch (const CommunicationError&) {
    return -1;
  }
}

/// Takes connections until all `awaited` readers are there or the time is over; the missing ones stay in `awaited`.
std::vector<StreamWriter::Reader> accept_readers(const Offer& offer, std::vector<int>& awaited, milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  std::vector<StreamWriter::Reader> readers;
  while (!awaited.empty() && Clock::now() < deadline) {
    auto socket = offer.listener->accept(left_until(deadline));
    if (!socket) continue;
    const int group_rank = greet(*socket, offer.token, awaited);
    if (group_rank < 0) continue;
    socket->watch_the_other_host();
    readers.push_back({group_rank, std::move(*socket)});
    awaited.erase(std::find(awaited.begin(), awaited.end(), group_rank));
  }
  return readers;
}

/// Whether the writer of this queue answers at the other end.
bool answers(MessageSocket& socket, const Greeting& greeting) {
  try {
    socket.send(&greeting, sizeof(greeting), kTryLimit);
    Greeting answer;
    socket.receive(&answer, sizeof(answer), kTryLimit);
    return answer.token == greeting.token && answer.group_rank == greeting.group_rank;
  } catch (const CommunicationError&) {
    return false;
  }
}

/// Tries the writer's addresses in turn, as not all of them need be reachable from here.
std::vector<MessageSocket> reach_writer(const Json& offer, GroupRank self, milliseconds limit) {
  const Greeting greeting{.token = offer.at("token"), .group_rank = self.value};
  const auto deadline = Clock::now() + limit;
  std::vector<MessageSocket> reached;
  while (reached.empty() && Clock::now() < deadline) {
    for (const std::string address : offer.at("addresses")) {
      auto socket = connect_to(address, offer.at("port"), std::min(kTryLimit, left_until(deadline)));
      if (!socket || !answers(*socket, greeting)) continue;
      socket->watch_the_other_host();
      reached.push_back(std::move(*socket));
      break;
    }
  }
  return reached;
}

}  // namespace

StreamEnds connect_streams(const GroupMember& member, GroupRank writer, const std::vector<int>& readers,
                           const MessageQueueOptions& options, const StringExchange& exchange) {
  Offer offer;
  if (member.self == writer) offer = make_offer(options.interface);
  const Json offered = Json::parse(exchange(offer.text).at(writer.value));
  if (offered.contains("error")) {
    throw CommunicationError(
        fmt::format("{}: {}", member.describe(writer.value), offered.at("error").get<std::string>()));
  }
  StreamEnds ends;
  std::string trouble;
  if (member.self == writer) {
    std::vector<int> awaited = readers;
    ends.to_readers = accept_readers(offer, awaited, options.timeout);
    for (int group_rank : awaited) trouble += fmt::format(" {}", member.describe(group_rank));
    if (!awaited.empty()) trouble = fmt::format("no connection within {} ms from{}", options.timeout.count(), trouble);
  } else if (std::find(readers.begin(), readers.end(), member.self.value) != readers.end()) {
    ends.to_writer = reach_writer(offered, member.self, options.timeout);
    if (ends.to_writer.empty()) {
      trouble = fmt::format("{} reached {} at none of {} port {} within {} ms", member.describe(member.self.value),
                            member.describe(writer.value), offered.at("addresses").dump(),
                            offered.at("port").get<int>(), options.timeout.count());
    }
  }
  std::string all_trouble;
  for (const std::string& text : exchange(trouble)) {
    if (!text.empty()) all_trouble += (all_trouble.empty() ? "" : "; ") + text;
  }
  if (!all_trouble.empty()) throw CommunicationError(all_trouble);
  return ends;
}

}  // namespace headway
