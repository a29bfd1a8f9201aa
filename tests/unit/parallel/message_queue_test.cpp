#include "headway/parallel/message_queue.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "headway/base/error.h"
#include "parallel/message/message_ring.h"
#include "parallel/message/message_setup.h"
#include "unit/parallel/shm_test_support.h"

namespace headway::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Where the members of a queue are: one letter for each, the same for members on one host.
struct Hosts {
  std::string letters;
  int members() const { return static_cast<int>(letters.size()); }
  bool apart(int a, int b) const { return letters[a] != letters[b]; }
};

/// `steps` counts what the members have done, for tests that need an order between them.
using QueueBody = std::function<void(const GroupMember& member, MessageQueue& queue, std::atomic<int>& steps)>;

std::vector<Outcome> run_queue(const Hosts& hosts, int writer, milliseconds timeout, const QueueBody& body,
                               int limit_seconds = 20,
                               const std::function<void(const std::vector<pid_t>&)>& parent = {}) {
  ForkExchange exchange(hosts.members());
  const auto member_body = [&](const GroupMember& member, const StringExchange& strings) {
    ::setenv("HEADWAY_HOST_ID", std::string(1, hosts.letters[member.self.value]).c_str(), 1);
    const MessageQueueOptions options{.timeout = timeout, .interface = "", .local_ranks = hosts.members()};
    const auto queue = make_message_queue("tp", member, GroupRank{writer}, options, strings);
    body(member, *queue, exchange.counter());
  };
  return run_members(exchange, hosts.members(), member_body, limit_seconds, parent);
}

/// A message that says which one it is at every position.
std::string message_of(int number, size_t bytes) {
  std::string message(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) message[i] = static_cast<char>((i * 31 + number * 7) % 251);
  return message;
}

void require_message(const std::string& actual, int number, size_t bytes) {
  require(actual.size() == bytes, fmt::format("message {} has {} bytes instead of {}", number, actual.size(), bytes));
  require(actual == message_of(number, bytes), fmt::format("message {} of {} bytes is another one", number, bytes));
}

class Queue : public ::testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  Hosts hosts() const { return {std::get<0>(GetParam())}; }
  int writer() const { return std::get<1>(GetParam()); }
};

TEST_P(Queue, BringsEveryMessageToEveryReaderInOrder) {
  const std::vector<size_t> sizes{0,         1, 1024, 3, MessageRing::kSlotBytes, MessageRing::kSlotBytes + 1,
                                  1'000'003, 0, 77};
  expect_all_well(
      run_queue(hosts(), writer(), std::chrono::seconds(10), [&](const GroupMember& member, auto& queue, auto& steps) {
        int number = 0;
        for (int round = 0; round < 30; ++round) {
          for (size_t bytes : sizes) {
            ++number;
            if (member.self.value == writer()) {
              queue.broadcast(message_of(number, bytes));
            } else {
              require_message(queue.receive(), number, bytes);
            }
          }
        }
        queue.check();
        ++steps;
        wait_for(steps, member.size());  // nobody leaves before the others have checked
      }));
}

TEST_P(Queue, LeavesTheLastMessagesToReadersWhenTheWriterHasLeft) {
  const auto outcomes =
      run_queue(hosts(), writer(), std::chrono::seconds(10), [&](const GroupMember& member, auto& queue, auto& steps) {
        if (member.self.value == writer()) {
          for (int number = 0; number < 5; ++number) queue.broadcast(message_of(number, 100));
          return;
        }
        std::this_thread::sleep_for(milliseconds(200));
        for (int number = 0; number < 5; ++number) require_message(queue.receive(), number, 100);
        std::this_thread::sleep_for(milliseconds(200));
        queue.receive();
      });
  for (int r = 0; r < hosts().members(); ++r) {
    const auto reason = fmt::format("group rank {} (global rank {}) has left the group", writer(), 10 + writer());
    EXPECT_THAT(outcomes[r].failure, HasSubstr(r == writer() ? "" : reason)) << r;
  }
}

TEST_P(Queue, TellsAReaderThatNothingCameAndGoesOn) {
  expect_all_well(
      run_queue(hosts(), writer(), std::chrono::seconds(10), [&](const GroupMember& member, auto& queue, auto& steps) {
        if (member.self.value == writer()) {
          wait_for(steps, member.size() - 1);
          queue.broadcast("late");
          return wait_for(steps, 2 * (member.size() - 1));
        }
        try {
          queue.receive(milliseconds(50));
          require(false, "received nothing");
        } catch (const CommunicationError& error) {
          require(std::string(error.what()).find("no message within 50 ms") != std::string::npos, error.what());
        }
        ++steps;
        require(queue.receive(milliseconds(5000)) == "late", "another message");
        ++steps;
      }));
}

/// The writer's death, in idle and without any limit, reaches every reader at once.
TEST_P(Queue, WakesIdleReadersWhenTheWriterDies) {
  const auto outcomes =
      run_queue(hosts(), writer(), std::chrono::seconds(60), [&](const GroupMember& member, auto& queue, auto& steps) {
        if (member.self.value == writer()) {
          std::this_thread::sleep_for(milliseconds(300));
          ::raise(SIGKILL);
        }
        queue.receive();
      });
  for (int r = 0; r < hosts().members(); ++r) {
    if (r == writer()) continue;
    EXPECT_THAT(outcomes[r].failure, AllOf(HasSubstr("message queue of tp: receive from group rank"),
                                           HasSubstr(hosts().apart(r, writer()) ? "closed" : "has died")));
    EXPECT_LT(outcomes[r].seconds, 5);
  }
}

TEST_P(Queue, NamesAReaderThatDied) {
  const int dying = (writer() + 1) % hosts().members();
  const auto outcomes =
      run_queue(hosts(), writer(), std::chrono::seconds(60), [&](const GroupMember& member, auto& queue, auto& steps) {
        if (member.self.value == dying) ::raise(SIGKILL);
        std::this_thread::sleep_for(milliseconds(200));
        if (member.self.value == writer()) {
          while (true) {
            queue.check();
            std::this_thread::sleep_for(milliseconds(10));
          }
        }
        queue.receive();
      });
  const auto who = fmt::format("group rank {} (global rank {})", dying, 10 + dying);
  for (int r = 0; r < hosts().members(); ++r) {
    if (r == dying) continue;
    EXPECT_THAT(outcomes[r].failure, HasSubstr(who)) << r;
    EXPECT_LT(outcomes[r].seconds, 5);
  }
}

TEST_P(Queue, NamesAReaderThatTakesNothing) {
  const int lazy = (writer() + 1) % hosts().members();
  const auto outcomes =
      run_queue(hosts(), writer(), milliseconds(150), [&](const GroupMember& member, auto& queue, auto& steps) {
        if (member.self.value == lazy) return std::this_thread::sleep_for(milliseconds(900));
        while (true) member.self.value == writer() ? queue.broadcast(message_of(1, 100'000)) : (void)queue.receive();
      });
  const auto who = fmt::format("group rank {} (global rank {})", lazy, 10 + lazy);
  for (int r = 0; r < hosts().members(); ++r) {
    if (r == lazy) continue;
    EXPECT_THAT(outcomes[r].failure, AllOf(HasSubstr(who), HasSubstr("150 ms"))) << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, Queue,
                         ::testing::Values(std::tuple("aa", 0), std::tuple("aaa", 1), std::tuple("aaaaa", 0),
                                           std::tuple("ab", 0), std::tuple("abcb", 2), std::tuple("aabb", 0)));

TEST(QueueOfOne, SendsNowhere) {
  const auto queue = make_message_queue("self", member_of(1, 0), GroupRank{0}, {},
                                        [](const std::string& own) { return std::vector{own}; });
  queue->broadcast("nothing");
  queue->check();
  EXPECT_THROW(queue->receive(), ArgumentError);
}

TEST(IdleReader, UsesHardlyAnyProcessorTime) {
  expect_all_well(
      run_queue({"aa"}, 0, std::chrono::seconds(10), [](const GroupMember& member, auto& queue, auto& steps) {
        const auto processor_seconds = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
        if (member.self.value == 0) {
          std::this_thread::sleep_for(milliseconds(1500));
          return queue.broadcast("x");
        }
        const double before = processor_seconds();
        queue.receive();
        const double used = processor_seconds() - before;
        require(used < 0.3, fmt::format("{} s of processor time in 1.5 s of waiting", used));
      }));
}

/// Slots are given back though the message found no memory; the next one arrives.
TEST(Ring, LosesAMessageThatFindsNoMemoryAndGoesOn) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer's allocator ends the process where there is no memory";
#endif
  constexpr size_t kHuge = size_t{64} << 20;
  expect_all_well(
      run_queue({"aa"}, 0, std::chrono::seconds(10), [](const GroupMember& member, auto& queue, auto& steps) {
        if (member.self.value == 0) {
          const std::string huge(kHuge, 'h');
          queue.broadcast(huge);
          queue.broadcast("next");
          return wait_for(steps, 1);
        }
        const rlimit limit{kHuge, kHuge};
        ::setrlimit(RLIMIT_DATA, &limit);
        bool failed = false;
        try {
          queue.receive();
        } catch (const std::bad_alloc&) {
          failed = true;
        }
        require(failed, "there was memory");
        require(queue.receive() == "next", "another message");
        ++steps;
      }));
}

TEST(Ring, IsReplacedByTcpWhereThereIsNoMemoryForIt) {
  ForkExchange exchange(3);
  expect_all_well(run_members(exchange, 3, [](const GroupMember& member, const StringExchange& strings) {
    const rlimit limit{4096, 4096};
    require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    ::freopen("/dev/null", "w", stderr);
    const auto queue = make_message_queue("tp", member, GroupRank{2}, {}, strings);
    if (member.self.value == 2) {
      queue->broadcast(message_of(9, 100'000));
    } else {
      require_message(queue->receive(), 9, 100'000);
    }
  }));
}

TEST(Connecting, NamesTheInterfaceThatIsNotThere) {
  ForkExchange exchange(2);
  const auto outcomes = run_members(exchange, 2, [](const GroupMember& member, const StringExchange& strings) {
    ::setenv("HEADWAY_HOST_ID", member.self.value == 0 ? "a" : "b", 1);
    make_message_queue("tp", member, GroupRank{0}, {.interface = "none0"}, strings);
  });
  for (const auto& outcome : outcomes) {
    EXPECT_THAT(outcome.failure, AllOf(HasSubstr("message queue of tp"), HasSubstr("group rank 0 (global rank 10)"),
                                       HasSubstr("network interface 'none0' has no address")));
  }
}

}  // namespace
}  // namespace headway::testing
