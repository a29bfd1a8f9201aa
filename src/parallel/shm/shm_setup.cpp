#include "parallel/shm/shm_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/json.h"
#include "headway/base/error.h"

namespace headway {
namespace {

struct HostLoad {
  std::set<int> cpus;
  size_t cpus_counted_per_rank = 0;
  int ranks_in_group = 0;
  int ranks_of_job = 0;
  int quota = 0;

  /// Ranks that are pinned apart compete with nobody; others with all ranks of the job on this host.
  bool oversubscribed() const {
    const bool pinned_apart = cpus_counted_per_rank == cpus.size();
    const int ranks = pinned_apart ? ranks_in_group : std::max(ranks_of_job, ranks_in_group);
    return ranks > std::min(static_cast<int>(cpus.size()), quota);
  }
};

Json own_introduction(const GroupMember& member, int local_ranks) {
  Json text{{"cpus", allowed_cpus()}, {"quota", cpu_quota()}, {"ranks", local_ranks}};
  try {
    const ProcessIdentity process = own_process();
    text["pid"] = process.pid;
    text["start"] = process.start_time;
    text["host"] = host_identity();
  } catch (const CommunicationError& error) {
    text["pid"] = 0;
    text["start"] = 0;
    text["host"] = fmt::format("unknown host of {}: {}", member.describe(member.self.value), error.what());
  }
  return text;
}

/// The owner's offer, or the reason why it has none.
struct Offer {
  std::shared_ptr<SharedSegment> segment;
  std::string text;
};

Offer make_offer(const SegmentPlan& plan) {
  try {
    auto segment = SharedSegment::create(plan.bytes);
    segment->reserve(plan.control.begin, plan.control.size());
    plan.construct(segment->data());
    const SegmentAddress address = segment->address();
    return {segment, dump_json(Json{{"descriptor", address.descriptor}, {"token", address.token}})};
  } catch (const CommunicationError& error) {
    return {nullptr, dump_json(Json{{"error", error.what()}})};
  }
}

std::shared_ptr<SharedSegment> accept(const Json& offer, const ProcessIdentity& owner, size_t bytes) {
  return SharedSegment::open({.owner = owner,
                              .descriptor = offer.at("descriptor").get<int>(),
                              .token = offer.at("token").get<uint64_t>(),
                              .bytes = bytes});
}

}  // namespace

std::string GroupMember::describe(int group_rank) const {
  return fmt::format("group rank {} (global rank {})", group_rank, ranks[group_rank].value);
}

bool Introductions::single_host() const {
  return std::all_of(hosts.begin(), hosts.end(), [&](const std::string& host) { return host == hosts.front(); });
}

std::string Introductions::describe_hosts(const GroupMember& member) const {
  for (int group_rank = 1; group_rank < member.size(); ++group_rank) {
    if (same_host(0, group_rank)) continue;
    return fmt::format("{} is on host '{}', {} on host '{}'", member.describe(0), hosts[0], member.describe(group_rank),
                       hosts[group_rank]);
  }
  return "all members are on one host";
}

Introductions introduce(const GroupMember& member, int local_ranks, const StringExchange& exchange) {
  Introductions result;
  std::map<std::string, HostLoad> loads;
  for (const std::string& text : exchange(dump_json(own_introduction(member, local_ranks)))) {
    const Json other = Json::parse(text);
    result.hosts.push_back(other.at("host"));
    result.processes.push_back({other.at("pid"), other.at("start")});
    const auto cpus = other.at("cpus").get<std::vector<int>>();
    HostLoad& load = loads[result.hosts.back()];
    load.cpus.insert(cpus.begin(), cpus.end());
    load.cpus_counted_per_rank += cpus.size();
    load.ranks_in_group += 1;
    load.ranks_of_job = std::max(load.ranks_of_job, other.at("ranks").get<int>());
    load.quota = other.at("quota");
  }
  result.oversubscribed =
      std::any_of(loads.begin(), loads.end(), [](const auto& e) { return e.second.oversubscribed(); });
  return result;
}

SharedSegmentResult share_segment(const GroupMember& member, const Introductions& introductions, GroupRank owner,
                                  const std::function<bool(int)>& participates, const SegmentPlan& plan,
                                  const StringExchange& exchange) {
  const int self = member.self.value;
  Offer offer;
  if (self == owner.value) offer = make_offer(plan);
  const Json offered = Json::parse(exchange(offer.text).at(owner.value));
  if (offered.contains("error")) {
    return {nullptr, fmt::format("{}: {}", member.describe(owner.value), offered.at("error").get<std::string>())};
  }
  SharedSegmentResult result{offer.segment, ""};
  std::string trouble;
  if (participates(self)) {
    try {
      if (!result.segment) result.segment = accept(offered, introductions.processes[owner.value], plan.bytes);
      const Range part = plan.part_of(self);
      result.segment->reserve(part.begin, part.size());
    } catch (const CommunicationError& error) {
      trouble = fmt::format("{}: {}", member.describe(self), error.what());
    }
  }
  for (const std::string& text : exchange(trouble)) {  // the owner's descriptor stays open until everyone is through
    if (result.refusal.empty()) result.refusal = text;
  }
  if (!result.refusal.empty()) result.segment = nullptr;
  if (result.segment) result.segment->close_descriptor();
  return result;
}

}  // namespace headway
