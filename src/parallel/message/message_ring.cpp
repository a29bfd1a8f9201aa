#include "parallel/message/message_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "headway/base/error.h"

namespace headway {

/// A piece of a message.
struct MessageRing::Slot {
  uint64_t message_bytes = 0;
  uint64_t offset = 0;  ///< of the piece in its message
  alignas(64) std::byte bytes[kSlotBytes];
};

namespace {

/// Gives a slot back when the reader is through with it, whatever happened meanwhile.
class SlotReturn {
 public:
  explicit SlotReturn(Signal& tail) : tail_(tail) {}
  ~SlotReturn() { tail_.raise(); }
  SlotReturn(const SlotReturn&) = delete;
  SlotReturn& operator=(const SlotReturn&) = delete;

 private:
  Signal& tail_;
};

size_t control_bytes(int members) {
  const size_t signals = (1 + members) * sizeof(Signal);
  return (signals + SharedSegment::kAlignment - 1) / SharedSegment::kAlignment * SharedSegment::kAlignment;
}

/// The order of two slot numbers, which wrap around.
bool is_before(uint32_t a, uint32_t b) {
  return static_cast<int32_t>(a - b) < 0;
}

}  // namespace

SegmentPlan MessageRing::plan(int members) {
  const size_t bytes = control_bytes(members) + kSlots * sizeof(Slot);
  return {.bytes = bytes,
          .control = {0, static_cast<int64_t>(bytes)},
          .construct =
              [members](std::byte* data) {
                for (int i = 0; i < 1 + members; ++i) new (data + i * sizeof(Signal)) Signal;
              },
          .part_of = [](int) { return Range{}; }};
}

MessageRing::MessageRing(GroupMember member, std::vector<ProcessIdentity> processes,
                         std::shared_ptr<SharedSegment> segment, GroupRank writer, std::vector<int> readers,
                         std::chrono::milliseconds timeout, SpinPolicy spinning)
    : peers_(std::move(member), std::move(processes), std::move(segment)),
      writer_(writer),
      readers_(std::move(readers)),
      timeout_(timeout),
      spinning_(spinning) {}

MessageRing::~MessageRing() {
  peers_.leave();
}

Signal& MessageRing::head() const {
  return reinterpret_cast<Signal*>(peers_.data())[0];
}
Signal& MessageRing::tail(int group_rank) const {
  return reinterpret_cast<Signal*>(peers_.data())[1 + group_rank];
}

MessageRing::Slot& MessageRing::slot(uint32_t number) const {
  auto* slots = reinterpret_cast<Slot*>(peers_.data() + control_bytes(peers_.size()));
  return slots[number % kSlots];
}

void MessageRing::write(std::string_view message) {
  if (peers_.failed()) peers_.throw_verdict(fmt::format("broadcast of {} bytes", message.size()));
  size_t offset = 0;
  do {
    const uint32_t number = head().value.load(std::memory_order_relaxed);
    if (!is_before(number, room_until_)) wait_for_room(number, message.size());
    Slot& next = slot(number);
    const size_t length = std::min(kSlotBytes, message.size() - offset);
    next.message_bytes = message.size();
    next.offset = offset;
    if (length != 0) std::memcpy(next.bytes, message.data() + offset, length);
    head().raise();
    offset += length;
  } while (offset < message.size());
}

/// Until every reader has given back the slot that `number` is to reuse.
void MessageRing::wait_for_room(uint32_t number, size_t bytes) {
  room_until_ = number + kSlots;
  for (int reader : readers_) {
    wait_for_reader(reader, number, bytes);
    const uint32_t until = tail(reader).value.load(std::memory_order_acquire) + kSlots;
    if (is_before(until, room_until_)) room_until_ = until;
  }
}

void MessageRing::wait_for_reader(int reader, uint32_t number, size_t bytes) {
  Signal& taken = tail(reader);
  const auto has_room = [&] { return is_before(number, taken.value.load(std::memory_order_seq_cst) + kSlots); };
  if (spin(spinning_, has_room)) return;
  const std::string operation = fmt::format("broadcast of {} bytes", bytes);
  const std::vector<int> suspects{reader};
  if (peers_.sleep(
          taken, has_room, [&] { return suspects; }, timeout_, operation))
    return;
  peers_.fail(operation, fmt::format("{} took no message within {} ms", peers_.describe(suspects), timeout_.count()));
}

std::string MessageRing::read(std::optional<std::chrono::milliseconds> limit) {
  Signal& taken = tail(peers_.self());
  std::string message;
  size_t received = 0;
  while (true) {
    // Within a message the writer may be waiting for another reader, and will say so within its own limit.
    wait_for_slot(received == 0 ? limit : 2 * timeout_, received != 0);
    const Slot& next = slot(taken.value.load(std::memory_order_relaxed));
    const SlotReturn giving_back(taken);
    if (next.offset != received) continue;  // the rest of a message that could not be taken
    if (received == 0) message.resize(next.message_bytes);
    const size_t length = std::min<size_t>(kSlotBytes, message.size() - received);
    if (length != 0) std::memcpy(message.data() + received, next.bytes, length);
    received += length;
    if (received == message.size()) return message;
  }
}

void MessageRing::wait_for_slot(std::optional<std::chrono::milliseconds> limit, bool within_message) {
  const uint32_t taken = tail(peers_.self()).value.load(std::memory_order_relaxed);
  const auto is_filled = [&] { return head().value.load(std::memory_order_seq_cst) != taken; };
  if (spin(spinning_, is_filled)) return;
  const std::string operation = fmt::format("receive from {}", peers_.describe({writer_.value}));
  if (peers_.sleep(
          head(), is_filled, [this] { return others(); }, limit, operation))
    return;
  if (within_message)
    peers_.fail(operation, fmt::format("the rest of a message did not come within {} ms", limit->count()));
  throw CommunicationError(fmt::format("{}: no message within {} ms", operation, limit->count()));
}

std::vector<int> MessageRing::others() const {
  std::vector<int> result;
  if (writer_.value != peers_.self()) result.push_back(writer_.value);
  for (int reader : readers_) {
    if (reader != peers_.self()) result.push_back(reader);
  }
  return result;
}

void MessageRing::check() {
  peers_.watch("message queue", others());
}

void MessageRing::give_up(const std::string& reason) const {
  peers_.give_up(reason);
}

}  // namespace headway
