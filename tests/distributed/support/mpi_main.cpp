// The main function of tests that run as several ranks.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "distributed/support/parallel_test.h"
#include "headway/base/error.h"
#include "headway/base/log.h"
#include "headway/parallel/cuda_devices.h"
#include "parallel/store/job.h"

namespace headway::testing {
namespace {

constexpr unsigned kDefaultSeconds = 120;

/// The ranks of this run. The harness's own messages go over Gloo whatever is tested.
struct Run {
  LaunchEnvironment launch = resolve_launch_environment();
  std::shared_ptr<Job> harness = std::make_shared<Job>(launch, harness_options());
  std::shared_ptr<Job> tested = std::make_shared<Job>(launch, options());
  std::unique_ptr<ParallelState> harness_state = ParallelState::create(harness, 1, 1);
  std::map<std::pair<int, int>, std::unique_ptr<ParallelState>> states;

  static DistributedOptions harness_options() {
    DistributedOptions options;
    options.backend = "gloo";
    return options;
  }
  static std::string backend() { return process_environment("HEADWAY_TEST_BACKEND").value_or("auto"); }
  static bool on_cuda() { return backend() == "nccl"; }
};

std::unique_ptr<Run> run;

/// Ranks other than 0 have no printer: their failures go to standard error as they happen.
class RankPrinter : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "[rank %d] %s:%d: %s\n", run->launch.rank.value, result.file_name() ? result.file_name() : "?",
                 result.line_number(), result.message());
  }
};

/// After each test the ranks tell each other how it went, so that all give the same verdict and none runs ahead.
class VerdictExchange : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo& info) override {
    const std::string name = std::string(info.test_suite_name()) + "." + info.name();
    at::Tensor own = at::empty({1, 2}, at::kLong);
    own.data_ptr<int64_t>()[0] = info.result()->Failed();
    own.data_ptr<int64_t>()[1] = static_cast<int64_t>(std::hash<std::string>()(name));
    const at::Tensor all = run->harness_state->world().all_gather(own, 0);
    const int64_t* verdicts = all.data_ptr<int64_t>();
    for (int r = 0; r < run->launch.world_size; ++r) {
      EXPECT_EQ(verdicts[2 * r + 1], own.data_ptr<int64_t>()[1]) << "rank " << r << " ran another test than " << name;
      EXPECT_TRUE(verdicts[2 * r] == 0 || r == run->launch.rank.value) << name << " failed on rank " << r;
    }
  }
};

void listen() {
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (run->launch.rank.value != 0) {
    delete listeners.Release(listeners.default_result_printer());
    delete listeners.Release(listeners.default_xml_generator());
    listeners.Append(new RankPrinter);
  }
  listeners.Append(new VerdictExchange);
}

/// Why the tests cannot run here, or nothing.
std::string reason_to_skip() {
  if (!Run::on_cuda()) return "";
  const int ranks = resolve_launch_environment().local_world_size;
  const int devices = visible_cuda_devices();
  const bool shared = process_environment("NCCL_MULTI_RANK_GPU_ENABLE") == "1" && devices > 0;
  if (devices >= ranks || shared) return "";
  return "NCCL needs a GPU for each of " + std::to_string(ranks) + " ranks, and " + std::to_string(devices) +
         " are visible";
}

}  // namespace

int world_size() {
  return run->launch.world_size;
}
GlobalRank global_rank() {
  return run->launch.rank;
}
at::Device device() {
  return run->tested->device();
}
const LaunchEnvironment& launch() {
  return run->launch;
}

DistributedOptions options() {
  DistributedOptions options;
  options.timeout = std::chrono::seconds(30);
  options.backend = Run::backend();
  if (Run::on_cuda()) options.device = Device::cuda;
  return options;
}

const ParallelState& parallel_state(int tp, int attn_tp) {
  auto& state = run->states[{tp, attn_tp}];
  if (!state) state = ParallelState::create(run->tested, tp, attn_tp);
  return *state;
}

const ParallelState& parallel_state(int attn_tp) {
  return parallel_state(world_size(), attn_tp);
}

std::vector<int> divisors(int n) {
  std::vector<int> found;
  for (int d = 1; d <= n; ++d) {
    if (n % d == 0) found.push_back(d);
  }
  return found;
}

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();
  const char* seconds = std::getenv("HEADWAY_TEST_SECONDS");
  ::alarm(seconds ? static_cast<unsigned>(std::atoi(seconds)) : kDefaultSeconds);  // no test outlives this
  const std::string reason = reason_to_skip();
  if (!reason.empty()) {
    std::printf("skipped: %s\n", reason.c_str());
    return 0;
  }
  run = std::make_unique<Run>();
  set_log_rank(run->launch.rank.value);
  listen();
  const int code = RUN_ALL_TESTS();
  run.reset();
  return code;
}

}  // namespace headway::testing

int main(int argc, char** argv) {
  try {
    return headway::testing::run_tests(argc, argv);
  } catch (const headway::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::_Exit(3);  // the peers may be gone: there is nothing to take leave of
  }
}
