#include "headway/engine/llm_engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "distributed/support/parallel_test.h"
#include "headway/base/error.h"
#include "support/fake_model.h"

namespace headway {
namespace {

using testing::FakeModel;

const ParallelState& state_of_all_ranks() {
  return testing::parallel_state(1);
}

/// What a model was asked to compute, step by step.
std::string text_of(const std::vector<FakeModel::Call>& calls) {
  std::string text;
  for (const FakeModel::Call& call : calls) text += fmt::format("{} -> {}\n", call.token_ids, call.logit_rows);
  return text;
}

/// Rank 0's text on every rank.
std::string from_first(const std::string& text) {
  return state_of_all_ranks().world().broadcast_object(text, {0});
}

SamplingParams at_temperature_one(int64_t max_tokens) {
  SamplingParams params;
  params.temperature = 1;
  params.max_tokens = max_tokens;
  return params;
}

// Fault case D14: 200 tokens without a seed are the same on every rank at every step, since rank 0 alone samples.
TEST(LLMEngineRanks, EveryRankComputesWhatRankZeroSampled) {
  FakeModel model;
  std::vector<int64_t> sampled;
  {
    LLMEngine engine(model, state_of_all_ranks());
    if (engine.is_driver()) {
      engine.add_request({3, 1, 4}, at_temperature_one(200));
      while (engine.has_unfinished()) {
        for (const RequestOutput& output : engine.step()) {
          sampled.insert(sampled.end(), output.token_ids.begin(), output.token_ids.end());
        }
      }
    } else {
      engine.follow();
    }
  }
  ASSERT_EQ(model.calls.size(), 200u);
  std::vector<int64_t> fed;
  for (size_t i = 1; i < model.calls.size(); ++i) fed.push_back(model.calls[i].token_ids.at(0));
  if (!sampled.empty()) sampled.pop_back();  // the last one is fed to no model
  EXPECT_EQ(fmt::format("{}", fed), from_first(fmt::format("{}", sampled)));
}

TEST(LLMEngineRanks, ChunksPreemptionAndCancellationReachEveryRank) {
  FakeModel model;
  EngineOptions options;
  options.kv_blocks = 6;
  options.max_num_seqs = 4;
  options.max_batch_tokens = 11;
  {
    LLMEngine engine(model, state_of_all_ranks(), options);
    if (engine.is_driver()) {
      for (int32_t tokens : {40, 7, 25, 13})
        engine.add_request(std::vector<int32_t>(tokens, tokens), at_temperature_one(30));
      const RequestId last = engine.add_request({5}, at_temperature_one(60));
      for (int step = 0; engine.has_unfinished(); ++step) {
        engine.step();
        if (step == 50) engine.cancel(last);
      }
    } else {
      engine.follow();
    }
  }
  EXPECT_GT(model.calls.size(), 50u);
  EXPECT_EQ(text_of(model.calls), from_first(text_of(model.calls)));
}

// Fault case C19: 2111, 2055, 1999, ... blocks; all ranks take the fewest.
TEST(LLMEngineRanks, AllRanksHaveTheKvBlocksOfTheSmallest) {
  FakeModel model;
  EngineOptions options;
  options.kv_blocks = 2111 - 56 * testing::global_rank().value;
  LLMEngine engine(model, state_of_all_ranks(), options);
  EXPECT_EQ(engine.kv_blocks(), 2111 - 56 * (testing::world_size() - 1));
  if (!engine.is_driver()) engine.follow();
}

// Fault case C24, with shorter times: idle for three times the limit of a collective, then a request.
TEST(LLMEngineRanks, IdleTimeBeyondTheCollectiveTimeoutHarmsNobody) {
  DistributedOptions options = testing::options();
  options.timeout = std::chrono::seconds(2);
  const auto state = ParallelState::create(testing::launch(), testing::world_size(), 1, options);
  FakeModel model;
  LLMEngine engine(model, *state);
  if (!engine.is_driver()) return engine.follow();
  std::this_thread::sleep_for(3 * options.timeout);
  engine.add_request({3, 1, 4}, at_temperature_one(5));
  size_t tokens = 0;
  while (engine.has_unfinished()) tokens += engine.step().size();
  EXPECT_EQ(tokens, 5u);
}

TEST(LLMEngineRanks, OnlyRankZeroAddsRequests) {
  FakeModel model;
  LLMEngine engine(model, state_of_all_ranks());
  if (engine.is_driver()) {
    EXPECT_THROW(engine.follow(), ArgumentError);
  } else {
    EXPECT_THROW(engine.add_request({1}, {}), ArgumentError);
    EXPECT_THROW(engine.step(), ArgumentError);
    engine.follow();
  }
}

}  // namespace
}  // namespace headway
