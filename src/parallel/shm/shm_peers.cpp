#include "parallel/shm/shm_peers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "headway/base/error.h"

namespace headway {
namespace {

/// Looking after one process takes some ten microseconds.
constexpr size_t kSuspectsPerWatch = 8;

}  // namespace

ShmPeers::ShmPeers(GroupMember member, std::vector<ProcessIdentity> processes, std::shared_ptr<SharedSegment> segment)
    : member_(std::move(member)), processes_(std::move(processes)), segment_(std::move(segment)) {}

void ShmPeers::throw_verdict(const std::string& operation) const {
  throw CommunicationError(fmt::format("{}: no longer possible: {}", operation, segment_->verdict().reason()));
}

void ShmPeers::fail(const std::string& operation, const std::string& reason) const {
  const std::string text = fmt::format("{}: {}", operation, reason);
  segment_->verdict().fail(fmt::format("{} (reported by {})", text, member_.describe(self())));
  throw CommunicationError(text);
}

void ShmPeers::fail_absent(const std::string& operation, const std::vector<int>& missing,
                           std::chrono::milliseconds limit) const {
  fail(operation, fmt::format("{} did not arrive within {} ms", describe(missing), limit.count()));
}

void ShmPeers::leave() const {
  segment_->verdict().fail(fmt::format("{} has left the group", member_.describe(self())));
}

void ShmPeers::watch(const std::string& operation, const std::vector<int>& suspects) {
  if (failed()) throw_verdict(operation);
  for (size_t i = 0; i < std::min(suspects.size(), kSuspectsPerWatch); ++i) {
    const int suspect = suspects[next_suspect_++ % suspects.size()];
    const ProcessIdentity& process = processes_[suspect];
    if (is_alive(process)) continue;
    fail(operation, fmt::format("{}, process {}, has died", member_.describe(suspect), process.pid));
  }
}

bool ShmPeers::sleep(Signal& signal, const std::function<bool()>& ready,
                     const std::function<std::vector<int>()>& suspects, std::optional<std::chrono::milliseconds> limit,
                     const std::string& operation) {
  std::optional<SteadyClock::time_point> deadline;
  if (limit) deadline = SteadyClock::now() + *limit;
  return sleep_until(signal, ready, deadline, [&] { watch(operation, suspects()); });
}

std::string ShmPeers::describe(const std::vector<int>& members) const {
  std::vector<std::string> names;
  for (int group_rank : members) names.push_back(member_.describe(group_rank));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace headway
