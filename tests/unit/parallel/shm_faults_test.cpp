#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "headway/base/error.h"
#include "parallel/shm_session.h"
#include "unit/parallel/shm_test_support.h"

namespace headway::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

ShmOptions options_with(milliseconds timeout) {
  return {.timeout = timeout, .local_ranks = 4};
}

void all_reduce(ShmSession& session, int64_t elements) {
  std::vector<float> tensor(elements, 1.0f);
  session.collectives().all_reduce(tensor.data(), elements, DType::F32);
}

std::vector<std::string> files_in_shared_memory_folder() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

size_t entries_in(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return std::distance(begin(entries), end(entries));
}

TEST(DeadMember, IsNamedByAllOthersWithoutWaitingForTheLimit) {
  const auto before = files_in_shared_memory_folder();
  const auto outcomes = run_sessions(4, options_with(std::chrono::seconds(60)), [](ShmSession& session, auto&) {
    for (int i = 0; i < 100; ++i) all_reduce(session, 896);
    if (session.self() == 2) ::raise(SIGKILL);
    while (true) all_reduce(session, 896);
  });
  EXPECT_EQ(outcomes[2].signal, SIGKILL);
  for (int r : {0, 1, 3}) {
    EXPECT_THAT(outcomes[r].failure, AllOf(HasSubstr("all_reduce of 3584 bytes of F32"),
                                           HasSubstr("group rank 2 (global rank 12), process"), HasSubstr("has died")));
    EXPECT_LT(outcomes[r].seconds, 10) << "group rank " << r;
  }
  EXPECT_EQ(files_in_shared_memory_folder(), before);
}

TEST(DeadMember, IsNoticedWhileAMessageIsWaitedFor) {
  const auto outcomes = run_sessions(2, options_with(std::chrono::seconds(60)), [](ShmSession& session, auto&) {
    char byte = 0;
    if (session.self() == 1) ::raise(SIGKILL);
    session.mail().receive(&byte, 1, GroupRank{1}, 3);
  });
  EXPECT_THAT(outcomes[0].failure,
              AllOf(HasSubstr("receive from group rank 1 (global rank 11) of 1 bytes (tag 3)"), HasSubstr("has died")));
}

/// Killed again and again at whatever place it happens to be; the survivor must neither hang nor crash.
TEST(DeadMember, MayDieAtAnyMoment) {
  for (int delay_us : {0, 100, 700, 1500, 3000, 5000}) {
    const auto outcomes = run_sessions(
        2, options_with(std::chrono::seconds(60)),
        [](ShmSession& session, auto&) {
          while (true) all_reduce(session, 100'000);
        },
        20,
        [&](const std::vector<pid_t>& members) {
          std::this_thread::sleep_for(std::chrono::microseconds(delay_us) + milliseconds(30));
          ::kill(members[1], SIGKILL);
        });
    EXPECT_EQ(outcomes[1].signal, SIGKILL);
    EXPECT_THAT(outcomes[0].failure, HasSubstr("has died"));
  }
}

TEST(AbsentMember, IsNamedWhenTheLimitHasPassed) {
  const auto outcomes = run_sessions(3, options_with(milliseconds(150)), [](ShmSession& session, auto& steps) {
    if (session.self() == 1) wait_for(steps, 2);
    const StepAtEnd step{steps};
    all_reduce(session, 8);
  });
  const auto reason = HasSubstr("group rank 1 (global rank 11) did not arrive within 150 ms");
  EXPECT_THAT(outcomes[0].failure, reason);
  EXPECT_THAT(outcomes[2].failure, reason);
  // The late one learns what happened.
  EXPECT_THAT(outcomes[1].failure, AllOf(HasSubstr("no longer possible"), reason));
}

TEST(AbsentMember, MayBeOneOfSeveral) {
  const auto outcomes = run_sessions(4, options_with(milliseconds(150)), [](ShmSession& session, auto& steps) {
    if (session.self() % 2 != 0) return wait_for(steps, 2);
    const StepAtEnd step{steps};
    session.collectives().barrier();
  });
  EXPECT_THAT(outcomes[0].failure,
              HasSubstr("barrier: group rank 1 (global rank 11), group rank 3 (global rank 13) did not arrive"));
}

TEST(StoppedMember, IsNamedWhenTheLimitHasPassed) {
  const auto outcomes = run_sessions(
      2, options_with(milliseconds(200)),
      [](ShmSession& session, auto&) {
        while (true) all_reduce(session, 896);
      },
      20,
      [](const std::vector<pid_t>& members) {
        std::this_thread::sleep_for(milliseconds(100));
        ::kill(members[1], SIGSTOP);
        siginfo_t info;
        ::waitid(P_PID, members[0], &info, WEXITED | WNOWAIT);
        ::kill(members[1], SIGCONT);
      });
  EXPECT_THAT(outcomes[0].failure, HasSubstr("group rank 1 (global rank 11) did not arrive within 200 ms"));
  EXPECT_THAT(outcomes[1].failure, HasSubstr("no longer possible"));
}

TEST(LeavingMember, IsNamed) {
  const auto outcomes = run_sessions(2, options_with(std::chrono::seconds(60)), [](ShmSession& session, auto&) {
    session.collectives().barrier();
    if (session.self() == 0) session.collectives().barrier();
  });
  EXPECT_THAT(outcomes[0].failure, HasSubstr("group rank 1 (global rank 11) has left the group"));
  EXPECT_EQ(outcomes[1].failure, "");
}

// Fault case C14.
TEST(Mismatch, OfSizesNamesOperationSizesAndRanks) {
  const auto outcomes = run_sessions(2, options_with(std::chrono::seconds(10)), [](ShmSession& session, auto&) {
    all_reduce(session, 64);
    all_reduce(session, session.self() == 0 ? 8 * 896 : 16 * 896);
  });
  EXPECT_THAT(outcomes[0].failure, HasSubstr("all_reduce of 28672 bytes of F32: group rank 1 (global rank 11) calls "
                                             "all_reduce of 57344 bytes of F32 in the same place"));
  EXPECT_THAT(outcomes[1].failure, HasSubstr("all_reduce of 57344 bytes of F32: group rank 0 (global rank 10) calls "
                                             "all_reduce of 28672 bytes of F32 in the same place"));
  EXPECT_LT(outcomes[0].seconds, 10);
}

TEST(Mismatch, OfOperationsIsFoundByAMemberThatAgreesWithTheOther) {
  const auto outcomes = run_sessions(3, options_with(std::chrono::seconds(10)), [](ShmSession& session, auto&) {
    if (session.self() == 2) return session.collectives().barrier();
    all_reduce(session, 1);
  });
  for (int r : {0, 1}) {
    EXPECT_THAT(outcomes[r].failure, HasSubstr("group rank 2 (global rank 12) calls barrier in the same place"));
  }
}

TEST(Mismatch, OfSourcesOfABroadcast) {
  const auto outcomes = run_sessions(2, options_with(std::chrono::seconds(10)), [](ShmSession& session, auto&) {
    int value = 0;
    session.collectives().broadcast(&value, sizeof(value), GroupRank{session.self()});
  });
  EXPECT_THAT(outcomes[0].failure, HasSubstr("calls broadcast of 4 bytes from group rank 1"));
}

TEST(Mismatch, OfPartsInAnAllToAllIsFoundByAll) {
  const auto outcomes = run_sessions(3, options_with(std::chrono::seconds(10)), [](ShmSession& session, auto&) {
    std::vector<char> input(30), output(31);
    std::vector<size_t> sent{10, 10, 10}, received{10, 10, 10};
    if (session.self() == 2) received[1] = 11;
    session.collectives().all_to_all(output.data(), input.data(), received, sent);
  });
  for (const auto& outcome : outcomes) {
    EXPECT_THAT(outcome.failure,
                AllOf(HasSubstr("all_to_all"), HasSubstr("group rank 1 sends 10 bytes to group rank 2, "
                                                         "which expects 11")));
  }
}

TEST(Mismatch, OfMessagesNamesBothSides) {
  const auto outcomes = run_sessions(2, options_with(std::chrono::seconds(10)), [](ShmSession& session, auto&) {
    char bytes[8] = {};
    if (session.self() == 0) session.mail().send(bytes, 8, GroupRank{1}, 1);
    if (session.self() == 1) session.mail().receive(bytes, 4, GroupRank{0}, 1);
    session.collectives().barrier();
  });
  EXPECT_THAT(outcomes[1].failure,
              HasSubstr("receive from group rank 0 (global rank 10) of 4 bytes (tag 1): it sent 8"));
  EXPECT_THAT(outcomes[0].failure, HasSubstr("no longer possible"));
}

TEST(FailedGroup, StaysFailed) {
  const auto outcomes = run_sessions(2, options_with(milliseconds(150)), [](ShmSession& session, auto& steps) {
    if (session.self() == 1) return wait_for(steps, 1);
    const StepAtEnd step{steps};
    const auto fails_to_meet = [&] {
      try {
        session.collectives().barrier();
      } catch (const CommunicationError&) {
        return true;
      }
      return false;
    };
    require(fails_to_meet() && fails_to_meet(), "met nobody");
    session.collectives().barrier();
  });
  EXPECT_THAT(outcomes[0].failure, AllOf(HasSubstr("no longer possible"), HasSubstr("did not arrive within 150 ms")));
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
    const auto joined = ShmSession::join(member, options_with(std::chrono::seconds(10)), strings);
    require(joined.session != nullptr, joined.refusal);
    for (int i = 0; i < 3; ++i) all_reduce(*joined.session, 200'000);
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
      all_reduce(*joined.session, 1000);
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
