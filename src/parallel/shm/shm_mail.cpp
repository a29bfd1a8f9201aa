#include "parallel/shm/shm_mail.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace headway {

/// What stands on an envelope.
struct ShmMail::Letter {
  uint64_t message_bytes = 0;
  int32_t tag = 0;
  uint32_t envelope = 0;
};

/// From one member to another. The signals count pieces, modulo 2^32.
struct ShmMail::Box {
  Signal sent;
  Signal taken;
  Letter letters[kEnvelopes];  ///< of piece n at n modulo their number
};

size_t ShmMail::control_bytes(int members) {
  return members * members * sizeof(Box);
}

void ShmMail::construct(std::byte* control, int members) {
  auto* boxes = reinterpret_cast<Box*>(control);
  for (int i = 0; i < members * members; ++i) new (boxes + i) Box;
}

ShmMail::ShmMail(ShmPeers& peers, Place place, std::chrono::milliseconds timeout, SpinPolicy spinning)
    : peers_(peers), place_(place), timeout_(timeout), spinning_(spinning) {}

ShmMail::Box& ShmMail::box(int sender, int receiver) const {
  return reinterpret_cast<Box*>(peers_.data() + place_.control)[sender * peers_.size() + receiver];
}

std::byte* ShmMail::envelope(int sender, size_t index) const {
  return peers_.data() + place_.envelopes + sender * place_.envelope_stride + index * kEnvelopeBytes;
}

/// Until the signal's count has reached `at_least`.
void ShmMail::wait(Signal& signal, uint32_t at_least, int peer, const char* verb, size_t bytes, int tag) {
  const auto reached = [&] {
    return static_cast<int32_t>(signal.value.load(std::memory_order_seq_cst) - at_least) >= 0;
  };
  if (spin(spinning_, reached)) return;
  const std::string operation = fmt::format("{} {} of {} bytes (tag {})", verb, peers_.describe({peer}), bytes, tag);
  const std::vector<int> suspects{peer};
  if (!peers_.sleep(
          signal, reached, [&] { return suspects; }, timeout_, operation)) {
    peers_.fail_absent(operation, suspects, timeout_);
  }
}

void ShmMail::send(const void* data, size_t bytes, GroupRank destination, int tag) {
  constexpr const char* kVerb = "send to";
  Box& to = box(peers_.self(), destination.value);
  size_t offset = 0;
  do {
    const size_t index = sent_++ % kEnvelopes;
    Use& use = uses_[index];
    if (use.destination >= 0) {
      wait(box(peers_.self(), use.destination).taken, use.piece, use.destination, kVerb, bytes, tag);
    }
    if (peers_.failed()) peers_.throw_verdict(fmt::format("{} {}", kVerb, peers_.describe({destination.value})));
    const uint32_t piece = to.sent.value.load(std::memory_order_relaxed);
    const size_t length = std::min(kEnvelopeBytes, bytes - offset);
    if (length != 0) std::memcpy(envelope(peers_.self(), index), static_cast<const std::byte*>(data) + offset, length);
    to.letters[piece % kEnvelopes] = {.message_bytes = bytes, .tag = tag, .envelope = static_cast<uint32_t>(index)};
    use = {.destination = destination.value, .piece = piece + 1};
    to.sent.raise();
    offset += length;
  } while (offset < bytes);
}

void ShmMail::receive(void* data, size_t bytes, GroupRank source, int tag) {
  Box& from = box(source.value, peers_.self());
  size_t offset = 0;
  do {
    const uint32_t piece = from.taken.value.load(std::memory_order_relaxed);
    wait(from.sent, piece + 1, source.value, "receive from", bytes, tag);
    const Letter letter = from.letters[piece % kEnvelopes];
    check(letter, bytes, source.value, tag);
    const size_t length = std::min(kEnvelopeBytes, bytes - offset);
    if (length != 0)
      std::memcpy(static_cast<std::byte*>(data) + offset, envelope(source.value, letter.envelope), length);
    from.taken.raise();
    offset += length;
  } while (offset < bytes);
}

void ShmMail::check(const Letter& letter, size_t bytes, int source, int tag) {
  if (letter.message_bytes == bytes && letter.tag == tag) return;
  peers_.fail(fmt::format("receive from {} of {} bytes (tag {})", peers_.describe({source}), bytes, tag),
              fmt::format("it sent {} bytes (tag {})", letter.message_bytes, letter.tag));
}

}  // namespace headway
