#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/trace.h"
#include "cli/bench_limits.h"
#include "cli/bench_profile.h"
#include "cli/bench_report.h"
#include "cli/bench_run.h"
#include "cli/spread.h"
#include "headway/base/error.h"
#include "headway/kernels/linear_handover.h"
#include "kernels/linear_reach.h"
#include "support/fake_model.h"

namespace headway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(BenchLimits, DecodingReadsWeightsOnceAndEverySequencesCache) {
  const DecodeWork work{{{1000, 10}, {1200, 30}}, 4, 5.0, 2.0};
  EXPECT_DOUBLE_EQ(work.bytes(), 2200 + 4 * 5.0 * 40);               // 3000
  EXPECT_DOUBLE_EQ(work.largest_rank_bytes(), 1200 + 4 * 5.0 * 30);  // 1800
  const MachineReach reach{6000, 1e9, 1};
  EXPECT_DOUBLE_EQ(decode_limit(work, reach), 8.0);  // 4 tokens in half a second
  EXPECT_DOUBLE_EQ(decode_limit_of_largest_rank(work, reach), 4 * 3000.0 / 1800);
}

TEST(BenchLimits, ArithmeticBoundsALargeBatch) {
  const DecodeWork work{{{1000, 0}}, 64, 1.0, 50.0};
  EXPECT_DOUBLE_EQ(decode_limit(work, {1000, 200, 1}), 4.0);
  EXPECT_DOUBLE_EQ(decode_limit_of_largest_rank(work, {1000, 200, 1}), 4.0);
  EXPECT_DOUBLE_EQ(prefill_limit(512, {1, 1, 0.25}), 2048.0);
}

TEST(Spread, TakesTheMiddleOfOddAndEvenCounts) {
  const Spread odd = spread_of({7, 1, 4});
  EXPECT_EQ(odd.median, 4);
  EXPECT_EQ(odd.least, 1);
  EXPECT_EQ(odd.most, 7);
  EXPECT_EQ(spread_of({2, 8, 3, 5}).median, 4);
}

BenchReport report_of(bool with_reach) {
  BenchReport report;
  report.architecture = "Qwen2ForCausalLM";
  report.dtype = "bf16";
  report.parallel.tp = 2;
  report.parallel.attn_tp = 1;
  report.threads = 3;
  report.work = {2, 100, 11};
  report.ranks = {{600, 1}, {200, 1}};
  report.ops_per_token = 1;
  for (const double seconds : {1.0, 4.0, 2.0}) {
    BenchRepetition repetition;
    repetition.times = {seconds, seconds, 10, 50.0, 0};  // 200 prompt tokens, 20 decoded ones
    if (with_reach) repetition.reach = MachineReach{1e4 / seconds, 1e12, 0.5 * seconds};
    report.repetitions.push_back(repetition);
  }
  return report;
}

TEST(BenchReport, ComparesEachRepetitionWithItsOwnLimit) {
  const Json json = bench_json(report_of(true));
  EXPECT_EQ(json["decode_tokens_per_s"], 10.0);
  EXPECT_EQ(json["decode_tokens_per_s_least"], 5.0);
  EXPECT_EQ(json["decode_tokens_per_s_most"], 20.0);
  EXPECT_EQ(json["prefill_tokens_per_s"], 100.0);
  EXPECT_EQ(json["decode_bytes_per_step"], 1000.0);
  EXPECT_EQ(json["decode_limit_tokens_per_s"], 10.0);
  EXPECT_EQ(json["prefill_limit_tokens_per_s"], 200.0);
  EXPECT_EQ(json["decode_ratio_least"], 1.0);  // the machine was as slow as the model in each
  EXPECT_EQ(json["decode_ratio_most"], 1.0);
  EXPECT_EQ(json["prefill_ratio"], 0.5);
  EXPECT_DOUBLE_EQ(json["read_gb_per_s"].get<double>(), 5e-6);
  EXPECT_DOUBLE_EQ(json["decode_limit_of_largest_rank_tokens_per_s"].get<double>(), 2 * 2500.0 / 700);
}

TEST(BenchReport, LimitsThatWereNotMeasuredAreNull) {
  const Json json = bench_json(report_of(false));
  EXPECT_EQ(json["decode_tokens_per_s"], 10.0);
  for (const char* key :
       {"decode_limit_tokens_per_s", "prefill_limit_tokens_per_s", "decode_ratio", "prefill_ratio", "read_gb_per_s"}) {
    EXPECT_TRUE(json.at(key).is_null()) << key;
  }
  EXPECT_THAT(bench_text(report_of(false), false), Not(HasSubstr("GB/s")));
}

TEST(BenchReport, TextShowsRatesLimitsAndRatios) {
  const std::string text = bench_text(report_of(true), false);
  for (const char* part : {"tp 2, attention over 1, 3 threads each", "2 sequences of 100 + 11 tokens", "median of 3",
                           "100.0", "50.0 - 200.0", "0.50", "1.00"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(BenchProfile, OperatorsInsideOthersCountOnce) {
  const std::vector<TraceEvent> events{{"step", 0, 100}, {"norm", 10, 20},   {"linear", 30, 80}, {"copy", 40, 45},
                                       {"norm", 80, 95}, {"step", 100, 130}, {"norm", 100, 110}};
  const std::vector<OperatorTime> all = operator_times(events, 0, 1000);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].name, "linear");
  EXPECT_EQ(all[0].self_ns, 45);
  EXPECT_EQ(all[1].name, "step");
  EXPECT_EQ(all[1].self_ns, 100 - 10 - 50 - 15 + 30 - 10);
  EXPECT_EQ(all[2].name, "norm");
  EXPECT_EQ(all[2].calls, 3);
  EXPECT_EQ(all[2].self_ns, 35);
  EXPECT_EQ(all[3].self_ns, 5);
  const std::vector<OperatorTime> later = operator_times(events, 100, 1000);
  ASSERT_EQ(later.size(), 2u);
  EXPECT_EQ(later[0].self_ns, 20);
}

TEST(BenchProfile, ChromeTraceNamesRanksAndCountsFromTheFirstEvent) {
  const Json trace = Json::parse(chrome_trace({{0, {{"a", 5000, 7500}}}, {1, {{"b", 4000, 4500}}}}));
  const Json& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["args"]["name"], "rank 0");
  EXPECT_EQ(events[1]["ts"], 1.0);
  EXPECT_EQ(events[1]["dur"], 2.5);
  EXPECT_EQ(events[3]["pid"], 1);
  EXPECT_EQ(events[3]["ts"], 0.0);
}

TEST(Trace, RecordsScopesWhileSomeoneListens) {
  {
    const TraceSpan unheard([]() -> std::string { throw Error("a name was asked for"); });
  }
  TraceRecorder recorder;
  EXPECT_THROW(TraceRecorder(), ArgumentError);
  {
    const TraceSpan outer([] { return "outer"; });
    const TraceSpan inner([] { return "inner"; });
  }
  const std::vector<TraceEvent> events = recorder.take();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].name, "inner");
  EXPECT_EQ(events[1].name, "outer");
  EXPECT_LE(events[1].begin_ns, events[0].begin_ns);
  EXPECT_GE(events[1].end_ns, events[0].end_ns);
  EXPECT_TRUE(recorder.take().empty());
}

TEST(LinearReach, CountsOperationsAndLeavesTheHandoverAlone) {
  const kernels::LinearHandover before = kernels::linear_handover();
  const kernels::LinearReach reach(
      {{at::ones({6, 32}), {}, 5}, {at::ones({7, 64}), {}, 3}, {at::ones({6, 32}), {}, 5}});
  EXPECT_EQ(reach.operations(), 2.0 * (2 * 5 * 6 * 32 + 3 * 7 * 64));
  EXPECT_GT(reach.measure(), 0);
  EXPECT_EQ(kernels::linear_handover(), before);
}

BenchTimes run_fake(const BenchWork& work, int64_t max_batch_tokens) {
  testing::FakeModel model;
  const auto state = ParallelState::single();
  EngineOptions options;
  options.max_num_seqs = work.sequences;
  options.max_batch_tokens = max_batch_tokens;
  LLMEngine engine(model, *state, options);
  return run_bench_work(engine, work, testing::kFakeVocab);
}

TEST(BenchRun, CountsTheStepsThatDecodeEverySequence) {
  const BenchTimes times = run_fake({3, 7, 6}, 64);
  EXPECT_EQ(times.decode_steps, 5);
  EXPECT_DOUBLE_EQ(times.mean_context, 7 + (1 + 2 + 3 + 4 + 5) / 5.0);
  EXPECT_GT(times.prefill_s, 0);
  EXPECT_GT(times.decode_s, 0);
  EXPECT_GT(times.decode_begin_ns, 0);
}

TEST(BenchRun, SequencesThatStartApartAreCountedWhileAllDecode) {
  const BenchTimes times = run_fake({2, 8, 6}, 8);  // the second prompt waits for room in a step
  EXPECT_LT(times.decode_steps, 5);
  EXPECT_GT(times.decode_steps, 0);
}

TEST(BenchRun, APrefillThatOutlastsTheFirstSequenceIsAnError) {
  EXPECT_THROW(run_fake({2, 40, 2}, 8), Error);
}

}  // namespace
}  // namespace headway
