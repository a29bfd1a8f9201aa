#include "headway/parallel/parallel_state.h"

namespace headway {

struct ParallelState::Impl {
  LaunchEnvironment launch;
  RankLayout layout;
  GroupCoordinator world;
  GroupCoordinator tp;
  GroupCoordinator lm_head_tp;
  GroupCoordinator attn_dp;
  GroupCoordinator self;
};

ParallelState::ParallelState(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ParallelState::~ParallelState() = default;

std::unique_ptr<ParallelState> ParallelState::single() {
  const auto alone = [](const char* name) { return GroupCoordinator(name, {{0}}, {0}, nullptr); };
  return std::unique_ptr<ParallelState>(new ParallelState(std::unique_ptr<Impl>(new Impl{
      {}, RankLayout(1, 1, 1), alone("world"), alone("tp"), alone("lm_head_tp"), alone("attn_dp"), alone("self")})));
}

const LaunchEnvironment& ParallelState::launch() const {
  return impl_->launch;
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

}  // namespace headway
