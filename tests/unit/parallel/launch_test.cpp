#include "headway/parallel/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "headway/base/error.h"
#include "parallel/launch/launch_variables.h"

namespace headway {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

LaunchEnvironment resolve(const Variables& variables) {
  return resolve_launch_environment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

std::string error_of(const Variables& variables) {
  try {
    const LaunchEnvironment launch = resolve(variables);
    return "accepted as " + launch.source;
  } catch (const LaunchError& error) {
    return error.what();
  }
}

void expect_place(const LaunchEnvironment& launch, const char* source, int rank, int world, int local_rank,
                  int local_world) {
  EXPECT_EQ(launch.source, source);
  EXPECT_EQ(launch.rank.value, rank);
  EXPECT_EQ(launch.world_size, world);
  EXPECT_EQ(launch.local_rank, local_rank);
  EXPECT_EQ(launch.local_world_size, local_world);
}

Variables open_mpi(int rank, int size, int local_rank, int local_size) {
  return {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
          {"OMPI_COMM_WORLD_SIZE", std::to_string(size)},
          {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(local_rank)},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(local_size)},
          {"PMIX_NAMESPACE", "1097596929"}};
}

Variables torchrun(int rank, int size, int local_rank, int local_size) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"LOCAL_RANK", std::to_string(local_rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(local_size)},
          {"MASTER_ADDR", "node0"},
          {"MASTER_PORT", "29431"},
          {"TORCHELASTIC_RUN_ID", "run7"},
          {"TORCHELASTIC_RESTART_COUNT", "2"},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
}

Variables slurm(int rank, int size, int local_rank, int node, const std::string& tasks_per_node) {
  return {{"SLURM_PROCID", std::to_string(rank)},
          {"SLURM_STEP_NUM_TASKS", std::to_string(size)},
          {"SLURM_LOCALID", std::to_string(local_rank)},
          {"SLURM_NODEID", std::to_string(node)},
          {"SLURM_STEP_TASKS_PER_NODE", tasks_per_node},
          {"SLURM_JOB_ID", "812"},
          {"SLURM_STEP_ID", "3"},
          {"SLURM_NTASKS", "64"}};
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

TEST(Launch, NothingSetIsASingleProcess) {
  expect_place(resolve({}), "single", 0, 1, 0, 1);
  expect_place(resolve({{"RANK", ""}, {"WORLD_SIZE", ""}}), "single", 0, 1, 0, 1);
}

TEST(Launch, HeadwaysOwnLauncherWinsOverWhatItInherited) {
  Variables variables = open_mpi(0, 1, 0, 1);
  for (const auto& [name, value] : child_launch_variables({2}, 3, "/run/store")) variables[name] = value;
  const LaunchEnvironment launch = resolve(variables);
  expect_place(launch, "headway", 2, 3, 2, 3);
  EXPECT_EQ(launch.store_file, "/run/store");
  EXPECT_TRUE(launch.single_host());
  EXPECT_EQ(error_of({{"HEADWAY_RANK", "1"}, {"HEADWAY_WORLD_SIZE", "2"}}),
            "HEADWAY_RANK=1 is set but HEADWAY_STORE is not");
}

TEST(Launch, TorchrunGivesPlaceAddressAndAgentStore) {
  const LaunchEnvironment launch = resolve(torchrun(5, 8, 1, 4));
  expect_place(launch, "torchrun", 5, 8, 1, 4);
  EXPECT_EQ(launch.master_addr, "node0");
  EXPECT_EQ(launch.master_port, 29431);
  EXPECT_EQ(launch.job_id, "run7.2");
  EXPECT_TRUE(launch.agent_serves_store);
  EXPECT_FALSE(launch.single_host());
}

TEST(Launch, TorchrunMayRunUnderAnotherLauncher) {
  expect_place(resolve(with(torchrun(5, 8, 1, 4), slurm(1, 2, 0, 1, "1(x2)"))), "torchrun", 5, 8, 1, 4);
  expect_place(resolve(with(torchrun(5, 8, 1, 4), open_mpi(1, 2, 0, 1))), "torchrun", 5, 8, 1, 4);
}

TEST(Launch, PlainVariablesOnOneHost) {
  const LaunchEnvironment launch =
      resolve({{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "4321"}});
  expect_place(launch, "env", 1, 3, 1, 3);
  EXPECT_EQ(launch.master_port, 4321);
  const LaunchEnvironment named = resolve({{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"HEADWAY_JOB_ID", "mine"}});
  expect_place(named, "env", 1, 3, 1, 3);
  EXPECT_EQ(named.job_id, "mine");
}

TEST(Launch, PlainVariablesWithARemoteAddressTakeTheRankToBeAloneOnItsHost) {
  expect_place(resolve({{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "4321"}}), "env",
               1, 3, 0, 1);
}

TEST(Launch, LocalRankAloneMustFitWhatElseIsKnown) {
  const Variables here{{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "::1"}, {"MASTER_PORT", "4321"}};
  expect_place(resolve(with(here, {{"LOCAL_RANK", "1"}})), "env", 1, 3, 1, 3);
  EXPECT_THAT(error_of(with(here, {{"LOCAL_RANK", "2"}})),
              AllOf(HasSubstr("LOCAL_RANK=2 is set without LOCAL_WORLD_SIZE"), HasSubstr("local rank 1 of 3")));
  const Variables elsewhere{{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "4321"}};
  EXPECT_THAT(error_of(with(elsewhere, {{"LOCAL_RANK", "1"}})),
              HasSubstr("local rank 0 of 1 here; set LOCAL_WORLD_SIZE"));
  // srun knows how many ranks are on each node.
  expect_place(resolve(with(with(elsewhere, {{"LOCAL_RANK", "1"}}), slurm(5, 8, 1, 1, "4(x2)"))), "env", 5, 8, 1, 4);
}

// Fault case C12: mpirun without RANK and WORLD_SIZE.
TEST(Launch, OpenMpiAlone) {
  for (int rank : {0, 1}) {
    const LaunchEnvironment launch = resolve(open_mpi(rank, 2, rank, 2));
    expect_place(launch, "openmpi", rank, 2, rank, 2);
    EXPECT_EQ(launch.job_id, "1097596929");
    EXPECT_TRUE(launch.single_host());
  }
}

// Fault case C12: RANK in conflict with OMPI_COMM_WORLD_RANK.
TEST(Launch, ConflictWithTheLauncherIsAnError) {
  EXPECT_EQ(error_of(with(open_mpi(0, 2, 0, 2), {{"RANK", "1"}, {"WORLD_SIZE", "2"}})),
            "RANK=1 contradicts OMPI_COMM_WORLD_RANK=0; unset the one that is not meant");
  EXPECT_EQ(error_of(with(open_mpi(0, 2, 0, 2), {{"RANK", "1"}})),
            "RANK=1 contradicts OMPI_COMM_WORLD_RANK=0; unset the one that is not meant");
  EXPECT_EQ(error_of(with(open_mpi(1, 2, 1, 2), {{"RANK", "1"}, {"WORLD_SIZE", "4"}})),
            "WORLD_SIZE=4 contradicts OMPI_COMM_WORLD_SIZE=2; unset the one that is not meant");
  EXPECT_THAT(error_of(with(slurm(3, 4, 1, 1, "2(x2)"), {{"RANK", "2"}, {"WORLD_SIZE", "4"}})),
              AllOf(HasSubstr("RANK=2"), HasSubstr("SLURM_PROCID=3")));
}

TEST(Launch, AgreementWithTheLauncherTakesItsLocalRank) {
  const LaunchEnvironment launch = resolve(
      with(open_mpi(3, 4, 1, 2), {{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "n"}, {"MASTER_PORT", "9"}}));
  expect_place(launch, "env", 3, 4, 1, 2);
  EXPECT_EQ(launch.job_id, "1097596929");
}

// Fault case C11: nothing but the launcher decides the world size, however many devices there are.
TEST(Launch, WorldSizeIsTheNumberOfProcesses) {
  const Variables devices{{"CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7"}, {"NVIDIA_VISIBLE_DEVICES", "all"}};
  EXPECT_EQ(resolve(with(open_mpi(1, 2, 1, 2), devices)).world_size, 2);
  EXPECT_EQ(resolve(devices).world_size, 1);
}

TEST(Launch, Slurm) {
  const Variables address{{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "4000"}};
  const LaunchEnvironment launch = resolve(with(slurm(7, 8, 1, 3, "2(x3),2"), address));
  expect_place(launch, "slurm", 7, 8, 1, 2);
  EXPECT_EQ(launch.job_id, "812.3");
  expect_place(resolve(with(slurm(6, 7, 0, 3, "2(x3),1"), address)), "slurm", 6, 7, 0, 1);
  expect_place(resolve(slurm(2, 3, 2, 0, "3")), "slurm", 2, 3, 2, 3);
  EXPECT_THAT(error_of(with(slurm(2, 3, 2, 1, "3"), address)), HasSubstr("SLURM_STEP_TASKS_PER_NODE=3"));
  EXPECT_THAT(error_of(with(slurm(2, 3, 2, 0, "3(x"), address)), HasSubstr("SLURM_STEP_TASKS_PER_NODE=3(x"));
}

TEST(Launch, AShellThatSlurmStartedIsNoLaunch) {
  expect_place(resolve({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}}), "single", 0, 1, 0, 1);
  expect_place(resolve(slurm(0, 1, 0, 0, "1")), "single", 0, 1, 0, 1);
  EXPECT_EQ(error_of({{"SLURM_STEP_NUM_TASKS", "2"}}), "SLURM_STEP_NUM_TASKS=2 is set but SLURM_PROCID is not");
}

TEST(Launch, Pmi) {
  const Variables hydra{{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}};
  expect_place(resolve(with(hydra, {{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "4000"}})), "pmi", 2, 4, 0, 2);
  const LaunchEnvironment launch = resolve(with(slurm(1, 2, 1, 0, "2"), {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}));
  expect_place(launch, "pmi", 1, 2, 1, 2);
  EXPECT_EQ(launch.job_id, "812.3");
}

TEST(Launch, PartialSetsAreErrors) {
  EXPECT_EQ(error_of({{"RANK", "3"}}), "RANK=3 is set but WORLD_SIZE is not");
  EXPECT_EQ(error_of({{"WORLD_SIZE", "4"}}), "WORLD_SIZE=4 is set but RANK is not");
  EXPECT_EQ(error_of({{"OMPI_COMM_WORLD_RANK", "1"}}), "OMPI_COMM_WORLD_RANK=1 is set but OMPI_COMM_WORLD_SIZE is not");
  const Variables place{{"RANK", "0"}, {"WORLD_SIZE", "2"}};
  EXPECT_EQ(error_of(with(place, {{"MASTER_ADDR", "node0"}})), "MASTER_ADDR=node0 is set but MASTER_PORT is not");
  EXPECT_EQ(error_of(with(place, {{"MASTER_PORT", "4000"}})), "MASTER_PORT=4000 is set but MASTER_ADDR is not");
  EXPECT_EQ(error_of(with(place, {{"LOCAL_WORLD_SIZE", "2"}})), "LOCAL_WORLD_SIZE=2 is set but LOCAL_RANK is not");
}

TEST(Launch, ValuesOutOfRangeAreErrors) {
  EXPECT_EQ(error_of({{"RANK", "4"}, {"WORLD_SIZE", "4"}}), "RANK=4 is not below WORLD_SIZE=4");
  EXPECT_EQ(error_of({{"RANK", "-1"}, {"WORLD_SIZE", "4"}}), "RANK=-1 is not a whole number of 0 or more");
  EXPECT_EQ(error_of({{"RANK", "0"}, {"WORLD_SIZE", "0"}}), "RANK=0 is not below WORLD_SIZE=0");
  EXPECT_EQ(error_of({{"RANK", "one"}, {"WORLD_SIZE", "4"}}), "RANK=one is not a whole number of 0 or more");
  EXPECT_EQ(error_of({{"RANK", "1"}, {"WORLD_SIZE", "4x"}}), "WORLD_SIZE=4x is not a whole number of 0 or more");
  EXPECT_EQ(error_of({{"RANK", "1"}, {"WORLD_SIZE", "99999999999"}}),
            "WORLD_SIZE=99999999999 is not a whole number of 0 or more");
  EXPECT_EQ(error_of(open_mpi(1, 2, 3, 4)), "OMPI_COMM_WORLD_LOCAL_SIZE=4 is more than OMPI_COMM_WORLD_SIZE=2");
  EXPECT_EQ(error_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "n"}, {"MASTER_PORT", "70000"}}),
            "MASTER_PORT=70000 is not a port number");
}

TEST(Launch, RanksThatCannotFindEachOtherAreToldWhatToSet) {
  EXPECT_THAT(error_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
              AllOf(HasSubstr("MASTER_ADDR"), HasSubstr("MASTER_PORT"), HasSubstr("HEADWAY_JOB_ID")));
  EXPECT_THAT(error_of(open_mpi(1, 4, 1, 2)),
              AllOf(HasSubstr("2 of the 4 ranks"), HasSubstr("MASTER_ADDR"), HasSubstr("MASTER_PORT")));
}

}  // namespace
}  // namespace headway
