#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "headway/base/error.h"
#include "parallel/shm/shm_session.h"
#include "unit/parallel/shm_test_support.h"

namespace headway::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

ShmOptions options_with(milliseconds timeout) {
  return {.timeout = timeout, .local_ranks = 4};
}

TEST(DeadMember, IsNamedByAllOthersWithoutWaitingForTheLimit) {
  const auto before = files_in_shared_memory_folder();
  const auto outcomes = run_sessions(4, options_with(std::chrono::seconds(60)), [](ShmSession& session, auto&) {
    for (int i = 0; i < 100; ++i) all_reduce_ones(session, 896);
    if (session.self() == 2) ::raise(SIGKILL);
    while (true) all_reduce_ones(session, 896);
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
          while (true) all_reduce_ones(session, 100'000);
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
    all_reduce_ones(session, 8);
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
        while (true) all_reduce_ones(session, 896);
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
    all_reduce_ones(session, 64);
    all_reduce_ones(session, session.self() == 0 ? 8 * 896 : 16 * 896);
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
    all_reduce_ones(session, 1);
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

}  // namespace
}  // namespace headway::testing
