#include "parallel/store/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "headway/base/error.h"
#include "headway/parallel/cuda_devices.h"
#include "parallel/communicator_factory.h"
#include "parallel/cuda_plugin.h"
#include "parallel/store/job_store.h"
#include "parallel/store/store_exchange.h"
#include "parallel/store/store_failure_board.h"
#include "parallel/verify_communicator.h"

namespace headway {
namespace {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "?";
}

const char* name_of(Device device) {
  return device == Device::cuda ? "cuda" : "cpu";
}

bool several_ranks_per_gpu() {
  return process_environment("NCCL_MULTI_RANK_GPU_ENABLE") == "1";
}

}  // namespace

Job::Job(LaunchEnvironment launch, DistributedOptions options)
    : launch_(std::move(launch)), options_(std::move(options)) {
  if (launch_.world_size > 1) meeting_ = meet(launch_, options_.rendezvous_timeout);
  require_equal({{"device", name_of(options_.device)},
                 {"backend", options_.backend},
                 {"HEADWAY_COLLECTIVES", chosen_collectives()}});
  check_backend(options_);
  if (options_.device == Device::cuda) settle_device();
}

std::vector<std::string> Job::exchange(const std::string& what, const std::string& own) {
  if (!meeting_) return {own};
  const std::string key = meeting_->key(fmt::format("exchange{}/{}", exchanges_++, what));
  return exchange_texts(meeting_->store(), key, own, {launch_.rank.value, launch_.world_size},
                        options_.rendezvous_timeout);
}

void Job::require_equal(const Settings& settings) {
  std::vector<Settings> all;
  for (const std::string& text : exchange("settings", encode_settings(settings))) {
    all.push_back(decode_settings(text));
  }
  const std::string difference = describe_differences(all);
  if (!difference.empty()) throw LaunchError("the ranks were started with different settings: " + difference);
}

void Job::settle_device() {
  std::string claim;
  std::string refusal;
  int index = 0;
  const int visible = visible_cuda_devices();
  try {
    index = choose_cuda_device(launch_, visible, several_ranks_per_gpu());
    claim = cuda_device_uuid(index);
  } catch (const LaunchError& error) {
    refusal = error.what();
  }
  const auto refusals = exchange("choice of a GPU", refusal);
  const auto uuids = exchange("GPU", claim);
  const auto hosts = exchange("host", host_name());
  std::vector<CudaDeviceClaim> claims;
  for (int r = 0; r < launch_.world_size; ++r) {
    if (!refusals[r].empty()) throw LaunchError(refusals[r]);
    claims.push_back({{r}, hosts[r], uuids[r], launch_.local_world_size, visible});
  }
  if (!several_ranks_per_gpu()) check_cuda_device_claims(claims);
  cuda_plugin().use_device(index);
  device_ = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
}

Job::Connection Job::connection_for(const RankList& ranks, GroupRank rank) {
  if (ranks.size() == 1) return {};
  std::vector<int> numbers;
  for (GlobalRank member : ranks) numbers.push_back(member.value);
  const std::string members = fmt::format("{}", fmt::join(numbers, ", "));
  KnownConnection& known = connections_[members];
  if (auto communicator = known.communicator.lock()) return {communicator, known.failures.lock()};
  const std::string key = meeting_->key(fmt::format("groups/{}/{}", members, times_built_[members]++));
  try {
    Connection made{make_communicator({key, ranks, rank, meeting_->shared_store(), launch_, options_}),
                    std::make_shared<StoreFailureBoard>(meeting_, key)};
    verify_communicator(*made.communicator, static_cast<int>(ranks.size()), rank);
    known = {made.communicator, made.failures};
    return made;
  } catch (const Error& error) {
    throw LaunchError(fmt::format("rank {} of {} cannot connect the group of ranks [{}]: {}", launch_.rank.value,
                                  launch_.world_size, members, error.what()));
  }
}

GroupCoordinator Job::make_group(const std::string& name, const RankList& ranks) {
  const auto self = std::find(ranks.begin(), ranks.end(), launch_.rank);
  if (self == ranks.end()) throw ArgumentError(fmt::format("{}: rank {} is not in it", name, launch_.rank.value));
  const GroupRank rank{static_cast<int>(self - ranks.begin())};
  Connection connection = connection_for(ranks, rank);
  return GroupCoordinator(name, ranks, launch_.rank, std::move(connection.communicator),
                          std::move(connection.failures));
}

}  // namespace headway
