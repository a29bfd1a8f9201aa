#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "headway/base/error.h"
#include "parallel/shm/shm_session.h"
#include "unit/parallel/shm_test_support.h"

namespace headway::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

size_t entries_in(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return std::distance(begin(entries), end(entries));
}

/// Each of `members` ends with the same refusal, which is returned.
std::string refusal_of(int members, const std::function<void(const GroupMember&)>& prepare) {
  ForkExchange exchange(members);
  const auto outcomes = run_members(exchange, members, [&](const GroupMember& member, const StringExchange& strings) {
    prepare(member);
    const auto joined = ShmSession::join(member, {}, strings);
    require(joined.session == nullptr, "joined");
    require(false, joined.refusal);
  });
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome.failure, outcomes[0].failure);
  return outcomes[0].failure;
}

TEST(Joining, IsRefusedOnAllMembersWhenOneIsOnAnotherHost) {
  const auto refusal = refusal_of(
      3, [](const GroupMember& member) { ::setenv("HEADWAY_HOST_ID", member.self.value == 2 ? "left" : "right", 1); });
  EXPECT_EQ(refusal, "group rank 0 (global rank 10) is on host 'right', group rank 2 (global rank 12) on host 'left'");
}

void limit_file_size(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
}

TEST(Joining, IsRefusedWhenTheFirstMemberGetsNoMemory) {
  const auto refusal = refusal_of(2, [](const GroupMember&) { limit_file_size(64 << 10); });
  EXPECT_THAT(refusal,
              AllOf(HasSubstr("group rank 0 (global rank 10): "), HasSubstr("bytes of shared memory exceed the "
                                                                            "file size limit of this process "
                                                                            "(65536 bytes)")));
}

TEST(Joining, IsRefusedWhenAnotherMemberCannotOpenTheMemory) {
  ForkExchange exchange(3);
  const auto outcomes = run_members(exchange, 3, [](const GroupMember& member, const StringExchange& strings) {
    int round = 0;
    const StringExchange misled = [&](const std::string& own) {
      auto all = strings(own);
      if (++round == 2 && member.self.value == 1) all[0] = R"({"descriptor": 999, "token": 1})";
      return all;
    };
    const auto joined = ShmSession::join(member, {}, misled);
    require(joined.session == nullptr, "joined");
    require(false, joined.refusal);
  });
  for (const auto& outcome : outcomes) {
    EXPECT_THAT(outcome.failure, AllOf(HasSubstr("group rank 1 (global rank 11): shared memory /proc/"),
                                       HasSubstr("/fd/999: No such file")));
  }
}

TEST(Joining, DoesNotDependOnTheSizeOfTheSharedMemoryFolder) {
  const auto with_tiny_folder = [](const GroupMember&, const StringExchange&) {
    require(::unshare(CLONE_NEWNS) == 0, "unshare");
    require(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "mount");
    require(::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=4096") == 0, "mount");
  };
  ForkExchange probe(1);
  if (!run_members(probe, 1, with_tiny_folder)[0].failure.empty()) GTEST_SKIP() << "mounting is not allowed here";
  ForkExchange exchange(2);
  expect_all_well(run_members(exchange, 2, [&](const GroupMember& member, const StringExchange& strings) {
    with_tiny_folder(member, strings);
    const auto joined = ShmSession::join(member, {.timeout = std::chrono::seconds(10), .local_ranks = 2}, strings);
    require(joined.session != nullptr, joined.refusal);
    for (int i = 0; i < 3; ++i) all_reduce_ones(*joined.session, 200'000);
  }));
}

TEST(Joining, IsRefusedForMoreMembersThanItServes) {
  GroupMember member = member_of(65, 0);
  const auto joined = ShmSession::join(member, {}, [](const std::string&) -> std::vector<std::string> { abort(); });
  EXPECT_EQ(joined.session, nullptr);
  EXPECT_THAT(joined.refusal, HasSubstr("65 members"));
}

// Fault case C04.
TEST(Joining, AndLeavingTwentyTimesLeavesNothingBehind) {
  const auto before = files_in_shared_memory_folder();
  ForkExchange exchange(2);
  expect_all_well(run_members(exchange, 2, [](const GroupMember& member, const StringExchange& strings) {
    size_t descriptors = 0, threads = 0, mappings = 0;
    for (int cycle = 1; cycle <= 20; ++cycle) {
      auto joined = ShmSession::join(member, {}, strings);
      all_reduce_ones(*joined.session, 1000);
      joined.session.reset();
      if (cycle == 2) {
        descriptors = entries_in("/proc/self/fd");
        threads = entries_in("/proc/self/task");
        mappings = entries_in("/proc/self/map_files");
      }
    }
    require(entries_in("/proc/self/fd") == descriptors, "descriptors grew");
    require(entries_in("/proc/self/task") == threads, "threads grew");
    require(entries_in("/proc/self/map_files") == mappings, "mappings grew");
  }));
  EXPECT_EQ(files_in_shared_memory_folder(), before);
}

TEST(Joining, LeavesNothingBehindWhenAMemberIsKilledInTheMiddle) {
  const auto before = files_in_shared_memory_folder();
  ForkExchange exchange(2);
  const auto outcomes = run_members(exchange, 2, [](const GroupMember& member, const StringExchange& strings) {
    int round = 0;
    const StringExchange dying = [&](const std::string& own) {
      auto all = strings(own);
      if (++round == 2) ::raise(SIGKILL);  // the memory exists, and only one has opened it
      return all;
    };
    ShmSession::join(member, {}, dying);
  });
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_EQ(files_in_shared_memory_folder(), before);
}

TEST(SharedSegment, RefusesWhatIsNotTheGroupsMemory) {
  auto own = SharedSegment::create(4096);
  auto other = SharedSegment::create(4096);
  SegmentAddress address = own->address();
  EXPECT_NO_THROW(SharedSegment::open(address));
  address.descriptor = other->address().descriptor;
  EXPECT_THROW(SharedSegment::open(address), CommunicationError);
  address = own->address();
  address.bytes = 8192;
  EXPECT_THROW(SharedSegment::open(address), CommunicationError);
  address = own->address();
  own->close_descriptor();
  EXPECT_THROW(SharedSegment::open(address), CommunicationError);
}

TEST(Processes, AreNotTakenForDeadForWantOfADescriptor) {
  ForkExchange exchange(1);
  expect_all_well(run_members(exchange, 1, [](const GroupMember&, const StringExchange&) {
    const ProcessIdentity process = own_process();
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_NOFILE, &none);
    require(is_alive(process), "taken for dead");
  }));
}

TEST(Processes, AreAliveUntilTheyEndEvenIfNobodyCollectsThem) {
  EXPECT_TRUE(is_alive(own_process()));
  ProcessIdentity later = own_process();
  later.start_time += 1;  // the same number, given again
  EXPECT_FALSE(is_alive(later));

  const pid_t child = ::fork();
  if (child == 0) ::pause();
  ProcessIdentity process{child, 0};
  for (uint64_t tick = own_process().start_time; !is_alive(process) && tick < own_process().start_time + 100'000;
       ++tick) {
    process.start_time = tick;
  }
  ASSERT_TRUE(is_alive(process));
  ::kill(child, SIGKILL);
  siginfo_t info;
  ::waitid(P_PID, child, &info, WEXITED | WNOWAIT);  // a zombie now
  EXPECT_FALSE(is_alive(process));
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace headway::testing
