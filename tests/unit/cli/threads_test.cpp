#include "cli/threads.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace headway {
namespace {

LaunchEnvironment launch_of(const char* source, int local_world_size) {
  LaunchEnvironment launch;
  launch.source = source;
  launch.world_size = launch.local_world_size = local_world_size;
  return launch;
}

EnvironmentLookup variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(Threads, WhatWasAskedForComesFirst) {
  const auto omp = variables({{"OMP_NUM_THREADS", "5"}});
  EXPECT_EQ(threads_for_rank(3, launch_of("headway", 2), {16, 16}, omp), 3);
  EXPECT_EQ(threads_for_rank({}, launch_of("headway", 2), {16, 16}, omp), 5);
  EXPECT_EQ(threads_for_rank({}, launch_of("headway", 2), {16, 16}, variables({{"OMP_NUM_THREADS", "6,2"}})), 6);
  EXPECT_EQ(threads_for_rank({}, launch_of("headway", 2), {16, 16}, variables({{"OMP_NUM_THREADS", "many"}})), 8);
}

TEST(Threads, RanksOfAHostShareItsProcessors) {
  EXPECT_EQ(threads_for_rank({}, launch_of("single", 1), {16, 16}, variables({})), 16);
  EXPECT_EQ(threads_for_rank({}, launch_of("headway", 3), {16, 16}, variables({})), 5);
  EXPECT_EQ(threads_for_rank({}, launch_of("headway", 8), {2, 2}, variables({})), 1);
  EXPECT_EQ(threads_for_rank({}, launch_of("headway", 2), {4, 16}, variables({})), 2);
  EXPECT_EQ(threads_for_rank({}, launch_of("openmpi", 4), {16, 16}, variables({})), 4);
}

TEST(Threads, ABoundRankTakesAllThatItIsBoundTo) {
  EXPECT_EQ(threads_for_rank({}, launch_of("openmpi", 4), {4, 16}, variables({})), 4);
  EXPECT_EQ(threads_for_rank({}, launch_of("slurm", 16), {1, 16}, variables({})), 1);
}

TEST(Threads, SomeProcessorIsUsable) {
  EXPECT_GE(processors().usable, 1);
  EXPECT_GE(processors().all, processors().usable);
}

}  // namespace
}  // namespace headway
