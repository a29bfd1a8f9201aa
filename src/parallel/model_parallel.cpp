#include <fmt/format.h>

#include "headway/base/error.h"
#include "headway/parallel/parallel_state.h"
#include "parallel/store/job.h"

namespace headway {
namespace {

/// What the free functions act on. The state goes before the job.
struct Process {
  std::shared_ptr<Job> job;
  std::shared_ptr<GroupCoordinator> world;
  std::shared_ptr<ParallelState> state;
};

Process& process() {
  static auto* instance = new Process;  // never destroyed: at exit torch may be gone before it
  return *instance;
}

RankList all_ranks(int world_size) {
  RankList ranks;
  for (int r = 0; r < world_size; ++r) ranks.push_back({r});
  return ranks;
}

const ParallelState& state_or(const char* error) {
  if (!process().state) throw Error(error);
  return *process().state;
}

}  // namespace

void init_distributed_environment(const LaunchEnvironment& launch, const DistributedOptions& options) {
  if (process().job) throw Error("distributed environment is already initialized");
  auto job = std::make_shared<Job>(launch, options);
  process().world = std::make_shared<GroupCoordinator>(job->make_group("world", all_ranks(launch.world_size)));
  process().job = std::move(job);
}

void initialize_model_parallel(int tensor_model_parallel_size, int lm_head_tensor_model_parallel_size) {
  if (!process().job) throw Error("distributed environment is not initialized");
  if (process().state) throw Error("tensor model parallel group is already initialized");
  process().state =
      ParallelState::create(process().job, tensor_model_parallel_size, lm_head_tensor_model_parallel_size);
}

void ensure_model_parallel_initialized(int tensor_model_parallel_size, int lm_head_tensor_model_parallel_size) {
  if (!model_parallel_is_initialized()) {
    initialize_model_parallel(tensor_model_parallel_size, lm_head_tensor_model_parallel_size);
    return;
  }
  const auto check = [](const GroupCoordinator& group, int size) {
    if (group.size() == size) return;
    throw Error(fmt::format("group {} is already initialized with size {}, not {}", group.name(), group.size(), size));
  };
  check(get_tp_group(), tensor_model_parallel_size);
  check(get_lm_tp_group(), lm_head_tensor_model_parallel_size);
}

bool model_parallel_is_initialized() {
  return process().state != nullptr;
}

void destroy_model_parallel() {
  process().state.reset();
  if (process().job) process().job->forget_connections();
}

void destroy_distributed_environment() {
  destroy_model_parallel();
  process().world.reset();
  process().job.reset();
}

const ParallelState& get_parallel_state() {
  return state_or("model parallel groups are not initialized.");
}

std::shared_ptr<const ParallelState> share_parallel_state() {
  get_parallel_state();
  return process().state;
}

std::shared_ptr<const GroupCoordinator> share_world_group() {
  get_world_group();
  return process().world;
}

const GroupCoordinator& get_world_group() {
  if (!process().world) throw Error("world group is not initialized.");
  return *process().world;
}

const GroupCoordinator& get_tp_group() {
  return state_or("tensor model parallel group is not initialized.").tp();
}

const GroupCoordinator& get_lm_tp_group() {
  return state_or("LM head tensor model parallel group is not initialized.").lm_head_tp();
}

int get_tensor_model_parallel_world_size() {
  return get_tp_group().size();
}
int get_tensor_model_parallel_rank() {
  return get_tp_group().rank().value;
}
int get_lm_tensor_model_parallel_world_size() {
  return get_lm_tp_group().size();
}
int get_lm_tensor_model_parallel_rank() {
  return get_lm_tp_group().rank().value;
}

}  // namespace headway
