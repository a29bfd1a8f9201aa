#include "parallel/shm/shm_session.h"

#include <fmt/format.h>

#include <utility>

namespace headway {
namespace {

size_t whole_pages(size_t bytes) {
  constexpr size_t kPage = SharedSegment::kAlignment;
  return (bytes + kPage - 1) / kPage * kPage;
}

/// First the control words of all members, then each member's slots and envelopes.
struct Layout {
  explicit Layout(int members)
      : mail_control(ShmGroup::control_bytes(members)),
        parts(whole_pages(mail_control + ShmMail::control_bytes(members))),
        envelopes(2 * ShmGroup::slot_bytes(members)),
        part_bytes(whole_pages(envelopes + ShmMail::kEnvelopes * ShmMail::kEnvelopeBytes)),
        total(parts + members * part_bytes) {}

  ShmGroup::Place group() const { return {.control = 0, .slots = parts, .slot_stride = part_bytes}; }
  ShmMail::Place mail() const {
    return {.control = mail_control, .envelopes = parts + envelopes, .envelope_stride = part_bytes};
  }

  size_t mail_control;
  size_t parts;
  size_t envelopes;  ///< within a part
  size_t part_bytes;
  size_t total;
};

}  // namespace

SegmentPlan ShmSession::plan(int members) {
  const Layout layout(members);
  return {.bytes = layout.total,
          .control = {0, static_cast<int64_t>(layout.parts)},
          .construct =
              [=](std::byte* data) {
                ShmGroup::construct(data, members);
                ShmMail::construct(data + layout.mail_control, members);
              },
          .part_of =
              [=](int group_rank) {
                const auto begin = static_cast<int64_t>(layout.parts + group_rank * layout.part_bytes);
                return Range{begin, begin + static_cast<int64_t>(layout.part_bytes)};
              }};
}

ShmSession::ShmSession(GroupMember member, std::vector<ProcessIdentity> processes,
                       std::shared_ptr<SharedSegment> segment, std::chrono::milliseconds timeout, SpinPolicy spinning)
    : peers_(std::move(member), std::move(processes), std::move(segment)),
      group_(peers_, Layout(peers_.size()).group(), timeout, spinning),
      collectives_(group_),
      mail_(peers_, Layout(peers_.size()).mail(), timeout, spinning) {}

ShmSession::~ShmSession() {
  peers_.leave();
}

ShmSession::Joined ShmSession::join(const GroupMember& member, const ShmOptions& options,
                                    const StringExchange& exchange) {
  if (member.size() > ShmGroup::kMaxMembers) {
    return {nullptr, fmt::format("{} members are more than the {} that shared memory serves", member.size(),
                                 ShmGroup::kMaxMembers)};
  }
  const Introductions introductions = introduce(member, options.local_ranks, exchange);
  if (!introductions.single_host()) return {nullptr, introductions.describe_hosts(member)};
  const auto everyone = [](int) { return true; };
  SharedSegmentResult shared =
      share_segment(member, introductions, GroupRank{0}, everyone, plan(member.size()), exchange);
  if (!shared.segment) return {nullptr, std::move(shared.refusal)};
  return {std::make_unique<ShmSession>(member, introductions.processes, std::move(shared.segment), options.timeout,
                                       SpinPolicy::for_host(introductions.oversubscribed)),
          ""};
}

}  // namespace headway
