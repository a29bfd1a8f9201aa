#include "headway/parallel/message_queue.h"

#include <fmt/format.h>

#include "headway/base/error.h"
#include "headway/base/log.h"
#include "parallel/message/message_ring.h"
#include "parallel/message/message_setup.h"
#include "parallel/message/message_stream.h"

namespace headway {
namespace {

/// Calls `body` and puts the queue's name before what it throws.
template <typename Body>
auto named(const std::string& name, const Body& body) {
  try {
    return body();
  } catch (const CommunicationError& error) {
    throw CommunicationError(fmt::format("{}: {}", name, error.what()));
  }
}

class QueueWriter : public MessageQueue {
 public:
  QueueWriter(std::string name, std::unique_ptr<MessageRing> ring, StreamWriter streams)
      : name_(std::move(name)), ring_(std::move(ring)), streams_(std::move(streams)) {}
  ~QueueWriter() override { streams_.leave(); }

  void broadcast(std::string_view message) override {
    attempt([&] {
      if (ring_) ring_->write(message);
      streams_.write(message);
    });
  }

  std::string receive(std::optional<std::chrono::milliseconds>) override {
    throw ArgumentError(fmt::format("{}: receive on the writer", name_));
  }

  void check() override {
    attempt([&] {
      if (ring_) ring_->check();
      streams_.check();
    });
  }

 private:
  /// Readers of one kind learn from here when one of the other kind has failed.
  template <typename Body>
  void attempt(const Body& body) {
    named(name_, [&] {
      try {
        body();
      } catch (const CommunicationError& error) {
        if (ring_) ring_->give_up(error.what());
        streams_.give_up(error.what());
        throw;
      }
    });
  }

  std::string name_;
  std::unique_ptr<MessageRing> ring_;  ///< null without readers on this host
  StreamWriter streams_;
};

/// `Source` is a MessageRing or a StreamReader.
template <typename Source>
class QueueReader : public MessageQueue {
 public:
  QueueReader(std::string name, std::unique_ptr<Source> source) : name_(std::move(name)), source_(std::move(source)) {}

  void broadcast(std::string_view) override { throw ArgumentError(fmt::format("{}: broadcast on a reader", name_)); }
  std::string receive(std::optional<std::chrono::milliseconds> limit) override {
    return named(name_, [&] { return source_->read(limit); });
  }
  void check() override {
    named(name_, [&] { source_->check(); });
  }

 private:
  std::string name_;
  std::unique_ptr<Source> source_;
};

/// The ring between the writer and the readers on its host, or why there is none.
struct RingResult {
  std::unique_ptr<MessageRing> ring;  ///< null also for members on other hosts
  std::string refusal;                ///< the same on every member
};

RingResult make_ring(const GroupMember& member, GroupRank writer, const Introductions& introductions,
                     const std::vector<int>& readers, const MessageQueueOptions& options,
                     const StringExchange& exchange) {
  if (readers.empty()) return {};
  const auto participates = [&](int group_rank) { return introductions.same_host(writer.value, group_rank); };
  auto shared = share_segment(member, introductions, writer, participates, MessageRing::plan(member.size()), exchange);
  if (!shared.segment) return {nullptr, shared.refusal};
  return {std::make_unique<MessageRing>(member, introductions.processes, std::move(shared.segment), writer, readers,
                                        options.timeout, SpinPolicy::for_host(introductions.oversubscribed)),
          ""};
}

}  // namespace

std::unique_ptr<MessageQueue> make_message_queue(const std::string& group_name, const GroupMember& member,
                                                 GroupRank writer, const MessageQueueOptions& options,
                                                 const StringExchange& exchange) {
  const std::string name = fmt::format("message queue of {}", group_name);
  const bool is_writer = member.self == writer;
  return named(name, [&]() -> std::unique_ptr<MessageQueue> {
    const Introductions introductions = introduce(member, options.local_ranks, exchange);
    std::vector<int> near, far;
    for (int r = 0; r < member.size(); ++r) {
      if (r != writer.value) (introductions.same_host(r, writer.value) ? near : far).push_back(r);
    }
    RingResult ring = make_ring(member, writer, introductions, near, options, exchange);
    if (!ring.refusal.empty()) {
      if (is_writer) log(LogLevel::warning, fmt::format("{} uses TCP only: {}", name, ring.refusal));
      far.insert(far.end(), near.begin(), near.end());
    }
    StreamEnds streams;
    if (!far.empty()) streams = connect_streams(member, writer, far, options, exchange);
    if (is_writer) {
      return std::make_unique<QueueWriter>(name, std::move(ring.ring),
                                           StreamWriter(member, std::move(streams.to_readers), options.timeout));
    }
    if (ring.ring) return std::make_unique<QueueReader<MessageRing>>(name, std::move(ring.ring));
    return std::make_unique<QueueReader<StreamReader>>(
        name, std::make_unique<StreamReader>(member, writer, std::move(streams.to_writer.at(0)), options.timeout));
  });
}

}  // namespace headway
