#include "parallel/launch/launch_sources.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <vector>

#include "headway/base/error.h"
#include "parallel/launch/launch_variables.h"

namespace headway {
namespace {

struct SourceNames {
  const char* source;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;
};

constexpr SourceNames kHeadway{"headway", kRankVariable, kWorldSizeVariable, nullptr, nullptr};
constexpr SourceNames kTorchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr SourceNames kEnvironment{"env", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr SourceNames kEnvironmentWithoutLocal{"env", "RANK", "WORLD_SIZE", nullptr, nullptr};
constexpr SourceNames kOpenMpi{"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                               "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr SourceNames kPmi{"pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};

struct Place {
  int rank = 0;
  int size = 1;
};

/// Both of a pair of variables or neither.
std::optional<Place> read_place(const LaunchVariables& variables, const char* rank_name, const char* size_name) {
  const auto rank = variables.number(rank_name);
  const auto size = variables.number(size_name);
  if (!rank && !size) return std::nullopt;
  if (!size) throw LaunchError(fmt::format("{}={} is set but {} is not", rank_name, *rank, size_name));
  if (!rank) throw LaunchError(fmt::format("{}={} is set but {} is not", size_name, *size, rank_name));
  if (*rank >= *size) {
    throw LaunchError(fmt::format("{}={} is not below {}={}", rank_name, *rank, size_name, *size));
  }
  return Place{*rank, *size};
}

LaunchEnvironment launch_at(Place place, const char* source) {
  LaunchEnvironment launch;
  launch.rank = {place.rank};
  launch.world_size = place.size;
  launch.source = source;
  return launch;
}

void set_local(LaunchEnvironment& launch, Place local, const SourceNames& names) {
  if (local.size > launch.world_size) {
    throw LaunchError(fmt::format("{}={} is more than {}={}", names.local_world_size, local.size, names.world_size,
                                  launch.world_size));
  }
  launch.local_rank = local.rank;
  launch.local_world_size = local.size;
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

/// Where the launcher says nothing about hosts: a rank that must reach another address is taken to be alone on its
/// host, which is right for any number of hosts; otherwise all ranks are on this one.
void assume_local(const LaunchVariables& variables, LaunchEnvironment& launch) {
  const auto address = variables.text("MASTER_ADDR");
  const bool one_host = !address || is_loopback(*address);
  launch.local_rank = one_host ? launch.rank.value : 0;
  launch.local_world_size = one_host ? launch.world_size : 1;
}

std::optional<LaunchEnvironment> read_source(const LaunchVariables& variables, const SourceNames& names) {
  const auto place = read_place(variables, names.rank, names.world_size);
  if (!place) return std::nullopt;
  LaunchEnvironment launch = launch_at(*place, names.source);
  const auto local = names.local_rank ? read_place(variables, names.local_rank, names.local_world_size) : std::nullopt;
  if (local) {
    set_local(launch, *local, names);
  } else {
    assume_local(variables, launch);
  }
  return launch;
}

std::optional<LaunchEnvironment> from_headway(const LaunchVariables& variables) {
  auto launch = read_source(variables, kHeadway);
  if (!launch) return std::nullopt;
  const auto store = variables.text(kStoreVariable);
  if (!store) {
    throw LaunchError(fmt::format("{}={} is set but {} is not", kRankVariable, launch->rank.value, kStoreVariable));
  }
  launch->store_file = *store;
  launch->local_rank = launch->rank.value;
  launch->local_world_size = launch->world_size;
  return launch;
}

std::optional<LaunchEnvironment> from_torchrun(const LaunchVariables& variables) {
  const auto run_id = variables.text("TORCHELASTIC_RUN_ID");
  if (!run_id) return std::nullopt;
  auto launch = read_source(variables, kTorchrun);
  if (!launch) return std::nullopt;
  launch->job_id = fmt::format("{}.{}", *run_id, variables.text("TORCHELASTIC_RESTART_COUNT").value_or("0"));
  launch->agent_serves_store = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  return launch;
}

std::optional<LaunchEnvironment> from_open_mpi(const LaunchVariables& variables) {
  auto launch = read_source(variables, kOpenMpi);
  if (!launch) return std::nullopt;
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) {
    if (launch->job_id.empty()) launch->job_id = variables.text(name).value_or("");
  }
  return launch;
}

/// Cuts a number off the front of `text`.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(parsed.ptr - text.data());
  return number;
}

/// The entry for `node` in Slurm's list of tasks per node, such as "2(x3),1".
std::optional<int> tasks_on_node(std::string_view list, int node) {
  while (!list.empty()) {
    const auto tasks = take_number(list);
    std::optional<int> repeat = 1;
    if (list.starts_with("(x")) {
      list.remove_prefix(2);
      repeat = take_number(list);
      if (!list.starts_with(')')) return std::nullopt;
      list.remove_prefix(1);
    }
    if (!tasks || !repeat) return std::nullopt;
    if (node < *repeat) return tasks;
    node -= *repeat;
    if (!list.starts_with(',')) return std::nullopt;
    list.remove_prefix(1);
  }
  return std::nullopt;
}

void read_slurm_local(const LaunchVariables& variables, LaunchEnvironment& launch) {
  const SourceNames names{"slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
                          "SLURM_STEP_TASKS_PER_NODE"};
  const auto local_rank = variables.number("SLURM_LOCALID");
  const auto list = variables.text("SLURM_STEP_TASKS_PER_NODE");
  if (!local_rank || !list) {
    throw LaunchError("SLURM_PROCID is set but SLURM_LOCALID or SLURM_STEP_TASKS_PER_NODE is not");
  }
  const int node = variables.number("SLURM_NODEID").value_or(0);
  const auto tasks = tasks_on_node(*list, node);
  if (!tasks || *local_rank >= *tasks) {
    throw LaunchError(fmt::format("SLURM_STEP_TASKS_PER_NODE={} has no task SLURM_LOCALID={} on node SLURM_NODEID={}",
                                  *list, *local_rank, node));
  }
  set_local(launch, {*local_rank, *tasks}, names);
}

std::optional<LaunchEnvironment> from_slurm(const LaunchVariables& variables) {
  if (!variables.text("SLURM_STEP_NUM_TASKS")) return std::nullopt;  // SLURM_PROCID alone: the shell of a batch job
  const auto place = read_place(variables, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  if (place->size == 1) return std::nullopt;  // a shell that srun started is no launch
  LaunchEnvironment launch = launch_at(*place, "slurm");
  read_slurm_local(variables, launch);
  launch.job_id =
      fmt::format("{}.{}", variables.text("SLURM_JOB_ID").value_or("0"), variables.text("SLURM_STEP_ID").value_or("0"));
  return launch;
}

/// Slurm's PMI plug-ins set PMI_RANK without the local rank, which Slurm's own variables then give.
std::optional<LaunchEnvironment> from_pmi(const LaunchVariables& variables) {
  auto launch = read_source(variables, kPmi);
  if (!launch || launch->world_size == 1) return std::nullopt;
  launch->job_id = variables.text("PMI_JOBID").value_or("");
  const auto slurm = from_slurm(variables);
  if (slurm && slurm->rank == launch->rank && slurm->world_size == launch->world_size) {
    launch->local_rank = slurm->local_rank;
    launch->local_world_size = slurm->local_world_size;
    launch->job_id = slurm->job_id;
  }
  return launch;
}

struct OuterLauncher {
  std::optional<LaunchEnvironment> (*read)(const LaunchVariables&);
  const char* rank;
  const char* world_size;
};

constexpr OuterLauncher kOuterLaunchers[] = {{from_open_mpi, kOpenMpi.rank, kOpenMpi.world_size},
                                             {from_pmi, kPmi.rank, kPmi.world_size},
                                             {from_slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};

void check_agreement(const LaunchVariables& variables, const char* name, const char* outer_name, int outer) {
  const auto value = variables.number(name);
  if (!value || *value == outer) return;
  throw LaunchError(
      fmt::format("{}={} contradicts {}={}; unset the one that is not meant", name, *value, outer_name, outer));
}

/// How many ranks are on this host where LOCAL_WORLD_SIZE does not say so: as the outer launcher or the address has it.
/// Scripts for srun often set LOCAL_RANK alone, which then must fit.
void complete_local(const LaunchVariables& variables, const std::optional<LaunchEnvironment>& outer,
                    LaunchEnvironment& launch) {
  if (outer) {
    launch.local_rank = outer->local_rank;
    launch.local_world_size = outer->local_world_size;
  }
  const auto stated = variables.number(kEnvironment.local_rank);
  if (!stated || *stated == launch.local_rank) return;
  throw LaunchError(
      fmt::format("LOCAL_RANK={} is set without LOCAL_WORLD_SIZE, and rank {} of {} would be local rank {} of {} here; "
                  "set LOCAL_WORLD_SIZE to the number of ranks on this host",
                  *stated, launch.rank.value, launch.world_size, launch.local_rank, launch.local_world_size));
}

/// RANK and WORLD_SIZE set by hand under a launcher must say what the launcher says.
std::optional<LaunchEnvironment> from_rank_variables(const LaunchVariables& variables) {
  std::optional<LaunchEnvironment> outer;
  for (const OuterLauncher& launcher : kOuterLaunchers) {
    outer = launcher.read(variables);
    if (!outer) continue;
    check_agreement(variables, kEnvironment.rank, launcher.rank, outer->rank.value);
    check_agreement(variables, kEnvironment.world_size, launcher.world_size, outer->world_size);
    break;
  }
  const bool size_is_stated = variables.text(kEnvironment.local_world_size).has_value();
  auto launch = read_source(variables, size_is_stated ? kEnvironment : kEnvironmentWithoutLocal);
  if (!launch) return launch;
  if (outer) launch->job_id = outer->job_id;
  if (!size_is_stated) complete_local(variables, outer, *launch);
  return launch;
}

}  // namespace

std::optional<std::string> LaunchVariables::text(const std::string& name) const {
  auto value = lookup_(name);
  if (value && value->empty()) return std::nullopt;
  return value;
}

std::optional<int> LaunchVariables::number(const std::string& name) const {
  const auto value = text(name);
  if (!value) return std::nullopt;
  int number = 0;
  const auto parsed = std::from_chars(value->data(), value->data() + value->size(), number);
  if (parsed.ec != std::errc{} || parsed.ptr != value->data() + value->size() || number < 0) {
    throw LaunchError(fmt::format("{}={} is not a whole number of 0 or more", name, *value));
  }
  return number;
}

std::optional<LaunchEnvironment> find_launch_source(const LaunchVariables& variables) {
  for (const auto read : {from_headway, from_torchrun, from_rank_variables, from_open_mpi, from_pmi, from_slurm}) {
    if (auto launch = read(variables)) return launch;
  }
  return std::nullopt;
}

}  // namespace headway
