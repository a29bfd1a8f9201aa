#include "parallel/shm/shm_group.h"

#include <fmt/format.h>

#include <array>
#include <new>

#include "headway/base/error.h"

namespace headway {

/// What a member publishes of a step. Call and number share a cache line, so that a waiter fetches both at once; two
/// lines of space, because processors fetch lines in pairs.
struct alignas(128) ShmGroup::Line {
  std::atomic<uint64_t> step{0};
  CollectiveCall call;
};

namespace {

constexpr size_t kLinesPerMember = 2;  // used in turn, as the slots are

std::string_view name_of(CollectiveKind kind) {
  constexpr std::array<std::string_view, 6> kNames{"barrier",        "all_reduce", "all_gather",
                                                   "reduce_scatter", "broadcast",  "all_to_all"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

std::string describe(const CollectiveCall& call) {
  const std::string_view name = name_of(call.kind);
  switch (call.kind) {
    case CollectiveKind::barrier:
    case CollectiveKind::all_to_all:
      return std::string(name);
    case CollectiveKind::all_gather:
      return fmt::format("{} of {} bytes", name, call.bytes);
    case CollectiveKind::broadcast:
      return fmt::format("{} of {} bytes from group rank {}", name, call.bytes, call.source);
    default:
      return fmt::format("{} of {} bytes of {}", name, call.bytes, headway::name_of(call.dtype));
  }
}

size_t ShmGroup::control_bytes(int members) {
  return sizeof(Signal) + members * kLinesPerMember * sizeof(Line);
}

size_t ShmGroup::slot_bytes(int members) {
  // Large enough that the steps cost little beside the copies, small enough to stay in the second-level cache.
  return members <= 8 ? 256 << 10 : members <= 16 ? 128 << 10 : 64 << 10;
}

void ShmGroup::construct(std::byte* control, int members) {
  new (control) Signal;
  auto* lines = reinterpret_cast<Line*>(control + sizeof(Signal));
  for (size_t i = 0; i < members * kLinesPerMember; ++i) new (lines + i) Line;
}

ShmGroup::ShmGroup(ShmPeers& peers, Place place, std::chrono::milliseconds timeout, SpinPolicy spinning)
    : peers_(peers), place_(place), timeout_(timeout), spinning_(spinning), slot_bytes_(slot_bytes(peers.size())) {}

Signal& ShmGroup::completion() const {
  return *reinterpret_cast<Signal*>(peers_.data() + place_.control);
}

ShmGroup::Line& ShmGroup::line_of(int group_rank) const {
  auto* lines = reinterpret_cast<Line*>(peers_.data() + place_.control + sizeof(Signal));
  return lines[group_rank * kLinesPerMember + step_ % kLinesPerMember];
}

const std::byte* ShmGroup::slot_of(int group_rank) const {
  return peers_.data() + place_.slots + group_rank * place_.slot_stride + step_ % kLinesPerMember * slot_bytes_;
}

bool ShmGroup::has_arrived(int group_rank) const {
  return line_of(group_rank).step.load(std::memory_order_seq_cst) == step_;  // nobody is two steps ahead
}

std::vector<int> ShmGroup::missing() const {
  std::vector<int> result;
  for (int group_rank = 0; group_rank < size(); ++group_rank) {
    if (!has_arrived(group_rank)) result.push_back(group_rank);
  }
  return result;
}

std::byte* ShmGroup::begin_step(const CollectiveCall& call) {
  if (peers_.failed()) peers_.throw_verdict(describe(call));
  ++step_;
  return const_cast<std::byte*>(slot_of(self()));
}

void ShmGroup::meet(const CollectiveCall& call) {
  Line& own = line_of(self());
  own.call = call;
  own.step.store(step_, std::memory_order_seq_cst);
  // Of several last arrivals at least one sees that all are there.
  if (completion().has_sleepers() && missing().empty()) completion().raise();

  int next = 0;
  const auto all_arrived = [&] {
    while (next < size() && has_arrived(next)) ++next;
    return next == size();
  };
  if (!spin(spinning_, all_arrived)) sleep_until_all_arrived(call);
  check_agreement(call);
}

void ShmGroup::sleep_until_all_arrived(const CollectiveCall& call) {
  const std::string operation = describe(call);
  const auto absent = [this] { return missing(); };
  if (!peers_.sleep(
          completion(), [this] { return missing().empty(); }, absent, timeout_, operation)) {
    peers_.fail_absent(operation, missing(), timeout_);
  }
}

void ShmGroup::check_agreement(const CollectiveCall& call) {
  for (int group_rank = 0; group_rank < size(); ++group_rank) {
    const CollectiveCall& other = line_of(group_rank).call;
    if (other == call) [[likely]]
      continue;
    fail(call, fmt::format("{} calls {} in the same place", peers_.describe({group_rank}), describe(other)));
  }
}

void ShmGroup::fail(const CollectiveCall& call, const std::string& reason) {
  peers_.fail(describe(call), reason);
}

}  // namespace headway
