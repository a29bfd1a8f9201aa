#include "headway/parallel/launch.h"

#include <fmt/format.h>

#include <cstdlib>

#include "headway/base/error.h"
#include "parallel/launch/launch_sources.h"
#include "parallel/launch/launch_variables.h"

namespace headway {
namespace {

constexpr int kLargestPort = 65535;

void read_master_address(const LaunchVariables& variables, LaunchEnvironment& launch) {
  const auto address = variables.text("MASTER_ADDR");
  const auto port = variables.number("MASTER_PORT");
  if (address.has_value() != port.has_value()) {
    throw LaunchError(address ? fmt::format("MASTER_ADDR={} is set but MASTER_PORT is not", *address)
                              : fmt::format("MASTER_PORT={} is set but MASTER_ADDR is not", *port));
  }
  if (!address) return;
  if (*port < 1 || *port > kLargestPort) throw LaunchError(fmt::format("MASTER_PORT={} is not a port number", *port));
  launch.master_addr = *address;
  launch.master_port = *port;
}

void check_reachable(const LaunchEnvironment& launch) {
  if (launch.world_size == 1 || !launch.master_addr.empty() || !launch.store_file.empty()) return;
  if (!launch.single_host()) {
    throw LaunchError(
        fmt::format("{} of the {} ranks ({}) are on this host and the others elsewhere: set MASTER_ADDR to the host of "
                    "rank 0 and MASTER_PORT to a free port there",
                    launch.local_world_size, launch.world_size, launch.source));
  }
  if (launch.job_id.empty()) {
    throw LaunchError(
        fmt::format("the {} ranks ({}) cannot find each other: set MASTER_ADDR=127.0.0.1 and MASTER_PORT to a free "
                    "port, or {} to a text that no other running job has",
                    launch.world_size, launch.source, kJobIdVariable));
  }
}

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

LaunchEnvironment resolve_launch_environment(const EnvironmentLookup& lookup) {
  const LaunchVariables variables(lookup);
  auto launch = find_launch_source(variables);
  if (!launch) return {};
  if (const auto job_id = variables.text(kJobIdVariable)) launch->job_id = *job_id;
  if (launch->world_size > 1 && launch->store_file.empty()) read_master_address(variables, *launch);
  check_reachable(*launch);
  return *launch;
}

std::vector<std::pair<std::string, std::string>> child_launch_variables(GlobalRank rank, int world_size,
                                                                        const std::string& store_file) {
  return {{kRankVariable, std::to_string(rank.value)},
          {kWorldSizeVariable, std::to_string(world_size)},
          {kStoreVariable, store_file}};
}

}  // namespace headway
