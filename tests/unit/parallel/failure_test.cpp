#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "headway/base/error.h"
#include "headway/parallel/parallel_state.h"
#include "support/expect_error.h"
#include "support/processes.h"
#include "support/temporary_folder.h"

namespace headway {
namespace {

using test::HasAll;
using test::Outcome;
using ::testing::HasSubstr;
using ::testing::Not;

/// Three ranks over Gloo whose collectives are limited to `timeout`.
class Failure : public ::testing::Test {
 protected:
  std::vector<Outcome> run(std::chrono::milliseconds timeout,
                           const std::function<std::string(const GroupCoordinator&)>& body) {
    return test::run_processes(
        3,
        [&](int rank) {
          LaunchEnvironment launch;
          launch.rank = {rank};
          launch.world_size = launch.local_world_size = 3;
          launch.local_rank = rank;
          launch.store_file = folder_.path() / "store";
          DistributedOptions options;
          options.backend = "gloo";
          options.timeout = timeout;
          const auto state = ParallelState::create(launch, 3, 1, options);
          return body(state->tp());
        },
        std::chrono::seconds(30));
  }

  test::TemporaryFolder folder_;
};

TEST_F(Failure, ARankThatDiesIsNamedByTheOthers) {
  const auto outcomes = run(std::chrono::seconds(20), [](const GroupCoordinator& group) -> std::string {
    group.barrier();
    if (group.rank().value == 2) ::_exit(7);
    group.all_reduce(at::ones({4, 2}));
    return "finished";
  });
  EXPECT_EQ(outcomes[2].exit_code, 7);
  for (int rank : {0, 1}) {
    EXPECT_THAT(outcomes[rank].text,
                HasAll("all_reduce of [4, 2] Float (operation 2) on tp, global rank " + std::to_string(rank) +
                           " (group rank " + std::to_string(rank) + " of 3)",
                       "global rank 2 did not arrive"));
    EXPECT_THAT(outcomes[rank].text, Not(HasSubstr("global rank 1 did not")));
    EXPECT_LT(outcomes[rank].seconds, 15);  // well before the limit of the collective
  }
}

TEST_F(Failure, TheRankThatKeepsWhatTheOthersAreDoingMayDieAsWell) {
  const auto outcomes = run(std::chrono::seconds(20), [](const GroupCoordinator& group) -> std::string {
    group.barrier();
    if (group.rank().value == 0) ::_exit(7);
    group.all_reduce(at::ones({3}));
    return "finished";
  });
  for (int rank : {1, 2}) {
    EXPECT_THAT(outcomes[rank].text, HasAll("all_reduce of [3] Float (operation 2) on tp", "cannot be asked",
                                            "the store of the job at 127.0.0.1:"));
    EXPECT_LT(outcomes[rank].seconds, 15);
  }
}

TEST_F(Failure, ARankThatHangsIsNamedWhenTheLimitIsOver) {
  const auto outcomes = run(std::chrono::seconds(2), [](const GroupCoordinator& group) -> std::string {
    if (group.rank().value == 1) {
      ::sleep(8);
      return "slept";
    }
    group.all_gather(at::ones({4}), 0);
    return "finished";
  });
  EXPECT_EQ(outcomes[1].text, "slept");
  for (int rank : {0, 2})
    EXPECT_THAT(outcomes[rank].text, HasAll("all_gather of [4] Float", "global rank 1 did not arrive"));
}

TEST_F(Failure, RanksInDifferentCollectivesAreTold) {
  const auto outcomes = run(std::chrono::seconds(2), [](const GroupCoordinator& group) -> std::string {
    if (group.rank().value == 1) {
      group.broadcast(at::ones({3}), {0});
    } else {
      group.barrier();
    }
    return "finished";
  });
  for (int rank : {0, 2}) {
    EXPECT_THAT(outcomes[rank].text, HasAll("barrier (operation 1)", "global rank 1 was in broadcast of [3] Float"));
  }
  EXPECT_THAT(outcomes[1].text, HasAll("broadcast", "global rank 0 was in barrier", "global rank 2 was in barrier"));
}

// Fault case C14 over Gloo, which itself ends a process that is sent more than it expects: the others name it.
TEST_F(Failure, ARankThatExpectsLessThanTheOthersSendIsNamed) {
  const auto outcomes = run(std::chrono::seconds(3), [](const GroupCoordinator& group) -> std::string {
    const int64_t tokens = group.rank().value == 2 ? 8 : 16;
    group.all_reduce(at::ones({tokens, 5}));
    return "finished";
  });
  EXPECT_EQ(outcomes[2].exit_code, -1);
  for (int rank : {0, 1}) {
    EXPECT_THAT(outcomes[rank].text, HasAll("all_reduce of [16, 5] Float (operation 1) on tp, global rank",
                                            "a member closed its connection", "; global rank 2 did not arrive"));
  }
}

TEST_F(Failure, IsRememberedSoThatNoLaterOperationIsBlamed) {
  const auto outcomes = run(std::chrono::seconds(2), [](const GroupCoordinator& group) -> std::string {
    const auto error_of_barrier = [&] { return test::error_of<CommunicationError>([&] { group.barrier(); }); };
    if (group.rank().value == 1) ::sleep(5);  // the others give up meanwhile
    error_of_barrier();
    return test::error_of<CommunicationError>([&] { group.all_reduce(at::ones({7})); });
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.text,
                HasAll("all_reduce on tp, global rank", "since an earlier failure: barrier (operation 1)"));
    EXPECT_THAT(outcome.text, Not(HasSubstr("was in all_reduce")));
  }
}

TEST_F(Failure, APeerThatLeavesWithoutSendingIsNamed) {
  const auto outcomes = run(std::chrono::seconds(2), [](const GroupCoordinator& group) -> std::string {
    at::Tensor tensor = at::ones({3});
    if (group.rank().value == 0) group.recv(tensor, {2}, 1);
    return "finished";
  });
  EXPECT_THAT(outcomes[0].text, HasAll("recv of [3] Float from global rank 2 on tp, global rank 0"));
}

}  // namespace
}  // namespace headway
