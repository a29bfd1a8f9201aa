#include "headway/parallel/parallel_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "headway/base/error.h"
#include "parallel/store/job.h"

namespace headway {

struct ParallelState::Impl {
  std::shared_ptr<Job> job;  ///< outlives the groups
  RankLayout layout;
  GroupCoordinator world;
  GroupCoordinator tp;
  GroupCoordinator lm_head_tp;
  GroupCoordinator attn_dp;
  GroupCoordinator self;

  Impl(std::shared_ptr<Job> met, RankLayout ranks)
      : job(std::move(met)),
        layout(ranks),
        world(make(GroupKind::world)),
        tp(make(GroupKind::tp)),
        lm_head_tp(make(GroupKind::lm_head_tp)),
        attn_dp(make(GroupKind::attn_dp)),
        self("self", {job->launch().rank}, job->launch().rank, nullptr) {}

  GroupCoordinator make(GroupKind kind) const {
    return job->make_group(std::string(name_of(kind)), layout.group_of(kind, job->launch().rank));
  }
};

ParallelState::ParallelState(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ParallelState::~ParallelState() = default;

std::unique_ptr<ParallelState> ParallelState::create(const LaunchEnvironment& launch, int tp, int attn_tp,
                                                     const DistributedOptions& options, const std::string& settings) {
  return create(std::make_shared<Job>(launch, options), tp, attn_tp, settings);
}

std::unique_ptr<ParallelState> ParallelState::create(std::shared_ptr<Job> job, int tp, int attn_tp,
                                                     const std::string& settings) {
  Settings all{{"tp", std::to_string(tp)}, {"lm_head_tp", std::to_string(attn_tp)}};
  for (auto& setting : settings_of_text(settings)) all.push_back(std::move(setting));
  job->require_equal(all);
  const RankLayout layout(job->launch().world_size, tp, attn_tp);
  return std::unique_ptr<ParallelState>(new ParallelState(std::make_unique<Impl>(std::move(job), layout)));
}

std::unique_ptr<ParallelState> ParallelState::single() {
  return create(LaunchEnvironment{}, 1, 1);
}

const LaunchEnvironment& ParallelState::launch() const {
  return impl_->job->launch();
}
std::chrono::milliseconds ParallelState::timeout() const {
  return impl_->job->timeout();
}
const RankLayout& ParallelState::layout() const {
  return impl_->layout;
}
const GroupCoordinator& ParallelState::world() const {
  return impl_->world;
}
const GroupCoordinator& ParallelState::tp() const {
  return impl_->tp;
}
const GroupCoordinator& ParallelState::lm_head_tp() const {
  return impl_->lm_head_tp;
}
const GroupCoordinator& ParallelState::attn_dp() const {
  return impl_->attn_dp;
}
const GroupCoordinator& ParallelState::self() const {
  return impl_->self;
}
at::Device ParallelState::device() const {
  return impl_->job->device();
}

std::shared_ptr<const GroupCoordinator> ParallelState::new_group(const std::string& name,
                                                                 const std::vector<RankList>& groups) const {
  const GlobalRank self = impl_->job->launch().rank;
  for (const RankList& ranks : groups) {
    if (std::find(ranks.begin(), ranks.end(), self) == ranks.end()) continue;
    return std::make_shared<GroupCoordinator>(impl_->job->make_group(name, ranks));
  }
  throw ArgumentError(fmt::format("{}: rank {} is in none of the {} groups", name, self.value, groups.size()));
}

}  // namespace headway
