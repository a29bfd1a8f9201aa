#include "parallel/communicator_factory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "headway/base/error.h"
#include "headway/base/log.h"
#include "parallel/cuda_plugin.h"
#include "parallel/gloo/gloo_communicator.h"
#include "parallel/shm/shm_communicator.h"
#include "parallel/shm/shm_session.h"
#include "parallel/store/store_exchange.h"

namespace headway {
namespace {

/// Every member's text, through the store.
StringExchange exchange_over_store(const CommunicatorRequest& request) {
  return [&request, round = 0](const std::string& own) mutable {
    const std::string key = fmt::format("{}/shm{}", request.key, round++);
    const Seat seat{request.rank.value, static_cast<int>(request.ranks.size())};
    return exchange_texts(*request.store, key, own, seat, request.options.rendezvous_timeout);
  };
}

std::string describe(const RankList& ranks) {
  std::vector<int> numbers;
  for (GlobalRank rank : ranks) numbers.push_back(rank.value);
  return fmt::format("ranks [{}]", fmt::join(numbers, ", "));
}

std::shared_ptr<Communicator> make_cpu_communicator(const CommunicatorRequest& request) {
  const std::string choice = chosen_collectives();
  if (choice == "gloo" || (choice.empty() && request.options.backend == "gloo")) return make_gloo_communicator(request);
  const ShmOptions options{.timeout = request.options.timeout, .local_ranks = request.launch.local_world_size};
  auto [session, refusal] = ShmSession::join({request.ranks, request.rank}, options, exchange_over_store(request));
  if (session) return std::make_shared<ShmCommunicator>(std::move(session));
  if (choice == "shm") {
    throw LaunchError(
        fmt::format("HEADWAY_COLLECTIVES=shm is not possible for {}: {}", describe(request.ranks), refusal));
  }
  if (request.rank.value == 0) {
    log(LogLevel::info, fmt::format("{} use Gloo instead of shared memory: {}", describe(request.ranks), refusal));
  }
  return make_gloo_communicator(request);
}

}  // namespace

void check_backend(const DistributedOptions& options) {
  const std::string& backend = options.backend;
  if (backend != "auto" && backend != "gloo" && backend != "nccl") {
    throw ConfigError(fmt::format("backend '{}' is not one of auto, gloo, nccl", backend));
  }
  const bool cuda = options.device == Device::cuda;
  if ((cuda && backend == "gloo") || (!cuda && backend == "nccl")) {
    throw ConfigError(fmt::format("backend {} does not serve device {}", backend, cuda ? "cuda" : "cpu"));
  }
  const std::string collectives = chosen_collectives();
  if (!collectives.empty() && collectives != "gloo" && collectives != "shm") {
    throw ConfigError(fmt::format("HEADWAY_COLLECTIVES={} is not one of gloo, shm", collectives));
  }
}

std::string chosen_collectives() {
  return process_environment("HEADWAY_COLLECTIVES").value_or("");
}

std::shared_ptr<Communicator> make_communicator(const CommunicatorRequest& request) {
  if (request.options.device == Device::cuda) return cuda_plugin().make_nccl_communicator(request);
  return make_cpu_communicator(request);
}

}  // namespace headway
