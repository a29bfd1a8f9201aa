#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "distributed/support/parallel_test.h"
#include "headway/base/error.h"
#include "support/expect_error.h"

namespace headway::testing {
namespace {

using test::HasAll;

/// Sets an environment variable while it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class CollectivesChoice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (world_size() == 1) GTEST_SKIP() << "a single rank talks to nobody";
    if (options().backend != "auto") GTEST_SKIP() << "the backend is given";
  }

  static std::unique_ptr<ParallelState> make_groups(int attn_tp = 1) {
    return ParallelState::create(launch(), world_size(), attn_tp, options());
  }

  /// That a group works, and over what.
  static void expect_backend(const GroupCoordinator& group, const std::string& backend) {
    EXPECT_EQ(group.backend_name(), backend) << group.name();
    EXPECT_EQ(group.all_reduce(at::full({5}, 3.0))[4].item<double>(), 3.0 * group.size()) << group.name();
  }
};

TEST_F(CollectivesChoice, IsSharedMemoryOnOneHost) {
  const auto state = make_groups();
  expect_backend(state->tp(), "shm");
}

TEST_F(CollectivesChoice, IsGlooForGroupsOverSeveralHosts) {
  if (world_size() % 2 != 0) GTEST_SKIP() << "two hosts with equally many ranks";
  const int ranks_per_host = world_size() / 2;
  const Variable host("HEADWAY_HOST_ID", std::to_string(global_rank().value / ranks_per_host));
  const auto state = make_groups(ranks_per_host);
  expect_backend(state->tp(), "gloo");
  expect_backend(state->attn_dp(), "gloo");
  expect_backend(state->lm_head_tp(), ranks_per_host == 1 ? "self" : "shm");
}

TEST_F(CollectivesChoice, IsWhatTheVariableSays) {
  const Variable collectives("HEADWAY_COLLECTIVES", "gloo");
  expect_backend(make_groups()->tp(), "gloo");
  const Variable others("HEADWAY_COLLECTIVES", "shm");
  expect_backend(make_groups()->tp(), "shm");
}

TEST_F(CollectivesChoice, IsAnErrorWhereTheVariableAsksForTheImpossible) {
  const Variable collectives("HEADWAY_COLLECTIVES", "shm");
  const Variable host("HEADWAY_HOST_ID", global_rank().value == 0 ? "left" : "right");
  EXPECT_THAT(test::error_of<LaunchError>([] { make_groups(); }),
              HasAll("HEADWAY_COLLECTIVES=shm is not possible for ranks [0, 1", "group rank 0 (global rank 0)",
                     "'left'", "group rank 1 (global rank 1)", "'right'"));
}

TEST_F(CollectivesChoice, IsAnErrorWhereTheVariableIsUnknown) {
  const Variable collectives("HEADWAY_COLLECTIVES", "carrier pigeon");
  EXPECT_THAT(test::error_of<ConfigError>([] { make_groups(); }),
              HasAll("HEADWAY_COLLECTIVES=carrier pigeon", "gloo, shm"));
}

TEST_F(CollectivesChoice, IsAnErrorWhereTheVariableDiffersBetweenRanks) {
  const Variable collectives("HEADWAY_COLLECTIVES", global_rank().value == 1 ? "gloo" : "shm");
  EXPECT_THAT(test::error_of<LaunchError>([] { make_groups(); }),
              HasAll("HEADWAY_COLLECTIVES is shm on rank", "gloo on rank 1"));
}

}  // namespace
}  // namespace headway::testing
