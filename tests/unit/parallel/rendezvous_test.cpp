#include <ATen/ATen.h>
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>

#include "headway/base/error.h"
#include "headway/parallel/parallel_state.h"
#include "parallel/launch/sockets.h"
#include "parallel/store/store_file.h"
#include "support/expect_error.h"
#include "support/processes.h"
#include "support/temporary_folder.h"

namespace headway {
namespace {

using test::HasAll;
using test::Outcome;
using test::run_processes;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kShort{2};

LaunchEnvironment place(int rank, int world_size) {
  LaunchEnvironment launch;
  launch.rank = {rank};
  launch.world_size = world_size;
  launch.local_rank = rank;
  launch.local_world_size = world_size;
  launch.source = "env";
  return launch;
}

LaunchEnvironment by_file(int rank, int world_size, const std::filesystem::path& file) {
  LaunchEnvironment launch = place(rank, world_size);
  launch.store_file = file;
  return launch;
}

LaunchEnvironment by_address(int rank, int world_size, const std::string& host, int port) {
  LaunchEnvironment launch = place(rank, world_size);
  launch.master_addr = host;
  launch.master_port = port;
  return launch;
}

DistributedOptions quick(std::chrono::milliseconds limit = kShort) {
  DistributedOptions options;
  options.backend = "gloo";
  options.rendezvous_timeout = limit;
  options.timeout = limit;
  return options;
}

/// Meets the others and says what the ranks' numbers plus one add up to.
std::string sum_of(const LaunchEnvironment& launch,
                   const DistributedOptions& options = quick(std::chrono::seconds(30))) {
  const auto state = ParallelState::create(launch, launch.world_size, 1, options);
  const at::Tensor sum = state->tp().all_reduce(at::full({1}, launch.rank.value + 1, at::kLong));
  return std::to_string(sum.item<int64_t>());
}

void expect_all(const std::vector<Outcome>& outcomes, const std::string& text) {
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.text, text);
}

int free_port() {
  return ListeningSocket::on_loopback().port();
}

class Rendezvous : public ::testing::Test {
 protected:
  test::TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "store";
};

TEST_F(Rendezvous, RanksMeetByTheLaunchersFileWhichIsGoneAfterwards) {
  const auto outcomes = run_processes(3, [&](int rank) {
    const auto state = ParallelState::create(by_file(rank, 3, file_), 3, 1, quick(std::chrono::seconds(30)));
    return std::filesystem::is_empty(folder_.path()) ? "gone" : "still there";
  });
  expect_all(outcomes, "gone");
}

TEST_F(Rendezvous, RanksMeetByTheirJobId) {
  ::setenv("TMPDIR", folder_.path().c_str(), 1);
  const auto outcomes = run_processes(2, [&](int rank) {
    LaunchEnvironment launch = place(rank, 2);
    launch.job_id = "1097596929@host/1 x";
    return sum_of(launch);
  });
  ::unsetenv("TMPDIR");
  expect_all(outcomes, "3");
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(Rendezvous, AFileOfADeadJobIsReplaced) {
  std::ofstream(file_) << free_port();
  expect_all(run_processes(3, [&](int rank) { return sum_of(by_file(rank, 3, file_)); }), "6");
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(Rendezvous, AFileOfARunningJobIsLeftAlone) {
  const StoreFile other(file_, "1");
  const auto outcomes = run_processes(1, [&](int rank) { return sum_of(by_file(rank, 2, file_), quick()); });
  EXPECT_THAT(outcomes[0].text, HasAll(file_.string(), "another running job", "HEADWAY_JOB_ID"));
  EXPECT_TRUE(std::filesystem::exists(file_));
}

TEST_F(Rendezvous, MissingRanksAreNamed) {
  const auto outcomes = run_processes(2, [&](int rank) { return sum_of(by_file(rank, 4, file_), quick()); });
  for (const Outcome& outcome : outcomes) EXPECT_THAT(outcome.text, HasAll("127.0.0.1:", "ranks [2, 3] did not join"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(Rendezvous, AMissingFirstRankIsNamedWithTheFile) {
  const auto outcomes = run_processes(1, [&](int) { return sum_of(by_file(1, 2, file_), quick()); });
  EXPECT_THAT(outcomes[0].text, HasAll("did not find rank 0", file_.string(), "MASTER_ADDR"));
}

TEST_F(Rendezvous, RanksMeetAtAnAddressAsOftenAsTheyLike) {
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const int port = free_port();
    const auto outcomes = run_processes(3, [&](int rank) {
      std::string sums;
      for (int i = 0; i < 3; ++i) sums += sum_of(by_address(rank, 3, host, port)) + " ";
      return sums;
    });
    expect_all(outcomes, "6 6 6 ");
  }
}

TEST_F(Rendezvous, APortThatIsTakenIsNamed) {
  ListeningSocket socket = ListeningSocket::on_loopback();
  const int port = socket.port();
  const int descriptor = socket.release();
  ASSERT_EQ(::listen(descriptor, 8), 0);
  const auto outcomes =
      run_processes(2, [&](int rank) { return sum_of(by_address(rank, 2, "127.0.0.1", port), quick()); });
  ::close(descriptor);
  EXPECT_THAT(outcomes[0].text,
              HasAll("error: rank 0 cannot listen at 127.0.0.1:" + std::to_string(port), "MASTER_PORT"));
  EXPECT_THAT(outcomes[1].text, HasAll("error: ", "127.0.0.1:" + std::to_string(port)));
  for (const Outcome& outcome : outcomes) EXPECT_FALSE(outcome.late);
}

TEST_F(Rendezvous, AnAddressWhereNobodyListensIsNamed) {
  const int port = free_port();
  const auto outcomes = run_processes(1, [&](int) { return sum_of(by_address(1, 2, "127.0.0.1", port), quick()); });
  EXPECT_THAT(outcomes[0].text,
              HasAll("rank 1 of 2 did not find rank 0", "127.0.0.1:" + std::to_string(port), "refused"));
}

TEST_F(Rendezvous, AnAddressThatCannotBeResolvedIsNamed) {
  const auto outcomes =
      run_processes(2, [&](int rank) { return sum_of(by_address(rank, 2, "no.such.invalid", 4321), quick()); });
  EXPECT_THAT(outcomes[0].text, HasAll("MASTER_ADDR=no.such.invalid cannot be resolved"));
  EXPECT_THAT(outcomes[1].text, HasAll("did not find rank 0", "no.such.invalid:4321"));
}

TEST_F(Rendezvous, TwoProcessesOfOneRankAreRefused) {
  const auto outcomes =
      run_processes(3, [&](int process) { return sum_of(by_file(process == 0 ? 0 : 1, 3, file_), quick()); });
  int refused = 0;
  for (const Outcome& outcome : outcomes)
    refused += outcome.text.find("two processes are rank 1 of 3") != std::string::npos;
  EXPECT_EQ(refused, 1);
}

TEST_F(Rendezvous, RanksThatDifferOnTheWorldSizeSaySo) {
  const auto outcomes =
      run_processes(2, [&](int rank) { return sum_of(by_file(rank, rank == 0 ? 2 : 4, file_), quick()); });
  EXPECT_THAT(outcomes[0].text, HasSubstr("rank 1 was started as one of 4 but rank 0 as one of 2"));
  EXPECT_THAT(outcomes[1].text, HasSubstr("rank 0 was started as one of 2 but rank 1 as one of 4"));
}

/// A rank that its launcher calls alone on its host, so that Gloo may not use the loopback interface unasked.
LaunchEnvironment on_its_own_host(int rank, int port) {
  LaunchEnvironment launch = by_address(rank, 2, "127.0.0.1", port);
  launch.local_rank = 0;
  launch.local_world_size = 1;
  return launch;
}

TEST_F(Rendezvous, SeveralHostsUseTheWayToTheMasterOrTheNamedInterface) {
  const int port = free_port();
  expect_all(run_processes(2, [&](int rank) { return sum_of(on_its_own_host(rank, port)); }), "3");
  for (const char* variable : {"GLOO_SOCKET_IFNAME", "HEADWAY_SOCKET_IFNAME"}) {
    const int other_port = free_port();
    ::setenv(variable, "lo", 1);
    expect_all(run_processes(2, [&](int rank) { return sum_of(on_its_own_host(rank, other_port)); }), "3");
    ::unsetenv(variable);
  }
}

TEST_F(Rendezvous, AnInterfaceThatDoesNotExistIsNamed) {
  const int port = free_port();
  for (const char* variable : {"GLOO_SOCKET_IFNAME", "HEADWAY_SOCKET_IFNAME"}) {
    ::setenv(variable, "nosuch7", 1);
    const auto outcomes = run_processes(2, [&](int rank) { return sum_of(on_its_own_host(rank, port), quick()); });
    ::unsetenv(variable);
    for (const Outcome& outcome : outcomes) {
      EXPECT_THAT(outcome.text, HasAll("group of ranks [0, 1]", std::string(variable) + "=nosuch7"));
    }
  }
  DistributedOptions options = quick();
  options.interface = "nosuch8";
  const auto outcomes = run_processes(2, [&](int rank) { return sum_of(by_file(rank, 2, file_), options); });
  for (const Outcome& outcome : outcomes) EXPECT_THAT(outcome.text, HasAll("interface option", "nosuch8"));
}

TEST_F(Rendezvous, OneHostDoesNotCareAboutTheInterfaceVariables) {
  ::setenv("GLOO_SOCKET_IFNAME", "^lo", 1);
  const auto outcomes = run_processes(2, [&](int rank) { return sum_of(by_file(rank, 2, file_)); });
  ::unsetenv("GLOO_SOCKET_IFNAME");
  expect_all(outcomes, "3");
}

}  // namespace
}  // namespace headway
