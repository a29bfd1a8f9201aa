#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "headway/parallel/group_coordinator.h"
#include "headway/parallel/launch.h"
#include "headway/parallel/rank_layout.h"

namespace headway {

enum class Device { cpu, cuda };

/// How the ranks of a job communicate, and how long they wait for each other.
struct DistributedOptions {
  Device device = Device::cpu;
  std::string backend = "auto";              ///< "auto" (shared memory or gloo on cpu, nccl on cuda), "gloo", "nccl"
  std::chrono::milliseconds timeout{60000};  ///< limit of each collective
  std::chrono::milliseconds rendezvous_timeout{60000};  ///< limit of finding each other
  std::string interface;                                ///< network interface for Gloo; empty: loopback on one host
};

class Job;

/// The process groups of one process, built once from a launch environment and the sizes.
class ParallelState {
 public:
  /// Builds world, TP, lm_head_tp and attn_dp groups; each rank connects the groups that it is in, in the same order
  /// everywhere: over c10d's backends a group is a meeting of its members alone, under a prefix of its own in one
  /// store, and ranks outside have nothing to do. Compares the sizes and `settings` (lines "name=value" that must be
  /// equal everywhere) over all ranks and throws LaunchError naming the ranks and values that differ, on every rank.
  static std::unique_ptr<ParallelState> create(const LaunchEnvironment& launch, int tp, int attn_tp,
                                               const DistributedOptions& options = {},
                                               const std::string& settings = "");

  /// As above, among ranks that have met already.
  static std::unique_ptr<ParallelState> create(std::shared_ptr<Job> job, int tp, int attn_tp,
                                               const std::string& settings = "");

  /// A single process: every group has size 1.
  static std::unique_ptr<ParallelState> single();

  ~ParallelState();
  ParallelState(const ParallelState&) = delete;
  ParallelState& operator=(const ParallelState&) = delete;

  const LaunchEnvironment& launch() const;
  const RankLayout& layout() const;
  std::chrono::milliseconds timeout() const;  ///< limit of each collective
  const GroupCoordinator& world() const;
  const GroupCoordinator& tp() const;
  const GroupCoordinator& lm_head_tp() const;  ///< the attention group
  const GroupCoordinator& attn_dp() const;     ///< the ranks that hold the same heads in different replicas
  const GroupCoordinator& self() const;        ///< this rank alone
  at::Device device() const;                   ///< where this rank's tensors lie

  /// Builds further groups (of a mesh, say) and returns the one that this rank is in. Called in the same order by all
  /// ranks that are in one of `groups`. Throws ArgumentError for a rank that is in none.
  std::shared_ptr<const GroupCoordinator> new_group(const std::string& name, const std::vector<RankList>& groups) const;

 private:
  struct Impl;
  explicit ParallelState(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The names that users of vLLM expect, over one process-wide ParallelState.
/// @{
void init_distributed_environment(const LaunchEnvironment& launch, const DistributedOptions& options = {});
void initialize_model_parallel(int tensor_model_parallel_size, int lm_head_tensor_model_parallel_size);
/// As initialize_model_parallel; if the groups exist already, checks that the sizes are equal.
void ensure_model_parallel_initialized(int tensor_model_parallel_size, int lm_head_tensor_model_parallel_size);
bool model_parallel_is_initialized();
void destroy_model_parallel();
void destroy_distributed_environment();
const ParallelState& get_parallel_state();
/// @{ For holders that may outlive a destroy: what they share goes with the last of them. Groups made after a destroy
/// have communicators of their own.
std::shared_ptr<const ParallelState> share_parallel_state();
std::shared_ptr<const GroupCoordinator> share_world_group();
/// @}
const GroupCoordinator& get_world_group();
const GroupCoordinator& get_tp_group();
/// Throws Error "LM head tensor model parallel group is not initialized." before initialize_model_parallel.
const GroupCoordinator& get_lm_tp_group();
int get_tensor_model_parallel_world_size();
int get_tensor_model_parallel_rank();
int get_lm_tensor_model_parallel_world_size();
int get_lm_tensor_model_parallel_rank();
/// @}

}  // namespace headway
