#include "headway/engine/llm_engine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <numeric>

#include "engine/kv_cache_size.h"
#include "engine/logprobs.h"
#include "engine/sampler.h"
#include "headway/base/error.h"
#include "headway/engine/sequence_length.h"
#include "support/fake_model.h"

namespace headway {
namespace {

using testing::fake_logits;
using testing::FakeModel;
using testing::kFakeVocab;

std::vector<int32_t> prompt_of(int64_t tokens, int32_t salt = 0) {
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < tokens; ++i) prompt.push_back((i * 31 + salt * 7 + 5) % kFakeVocab);
  return prompt;
}

SamplingParams seeded(double temperature, uint64_t seed, int64_t max_tokens) {
  SamplingParams params;
  params.temperature = temperature;
  params.seed = seed;
  params.max_tokens = max_tokens;
  return params;
}

/// What a request must give, computed without an engine.
std::vector<int32_t> expected_text(std::vector<int32_t> tokens, const SamplingParams& params) {
  std::vector<int32_t> text;
  for (int64_t i = 0; i < params.max_tokens; ++i) {
    text.push_back(sample_token(fake_logits(tokens), params, params.seed.value_or(0), i));
    tokens.push_back(text.back());
  }
  return text;
}

struct Results {
  std::map<RequestId, std::vector<int32_t>> texts;
  std::map<RequestId, FinishReason> reasons;
  std::map<RequestId, std::string> errors;
};

Results run_to_end(LLMEngine& engine) {
  Results results;
  for (int step = 0; engine.has_unfinished(); ++step) {
    if (step == 5000) throw Error("the engine does not finish");
    for (const RequestOutput& output : engine.step()) {
      auto& text = results.texts[output.request];
      text.insert(text.end(), output.token_ids.begin(), output.token_ids.end());
      if (output.finish_reason) results.reasons[output.request] = *output.finish_reason;
      if (!output.error.empty()) results.errors[output.request] = output.error;
    }
  }
  return results;
}

EngineOptions options_of(int64_t kv_blocks, int64_t block_size, int64_t max_num_seqs, int64_t max_batch_tokens) {
  EngineOptions options;
  options.kv_blocks = kv_blocks;
  options.block_size = block_size;
  options.max_num_seqs = max_num_seqs;
  options.max_batch_tokens = max_batch_tokens;
  return options;
}

class EngineShapes : public ::testing::TestWithParam<EngineOptions> {};

// Fault cases D11 and E22: neither neighbours nor blocks, chunks and preemption change a text.
TEST_P(EngineShapes, TextsAreThoseOfRequestsAlone) {
  const auto state = ParallelState::single();
  FakeModel model;
  LLMEngine engine(model, *state, GetParam());
  std::map<RequestId, std::vector<int32_t>> expected;
  int32_t salt = 0;
  for (int64_t tokens : {37, 1, 16, 17, 60, 5}) {
    const SamplingParams params = seeded(salt % 2 == 0 ? 0.0 : 0.9, 42 + salt / 4, 20 + salt);
    const auto prompt = prompt_of(tokens, salt++);
    expected[engine.add_request(prompt, params)] = expected_text(prompt, params);
  }
  EXPECT_EQ(run_to_end(engine).texts, expected);
  EXPECT_EQ(engine.free_kv_blocks(), engine.kv_blocks());
}

INSTANTIATE_TEST_SUITE_P(BlocksAndBudgets, EngineShapes,
                         ::testing::Values(options_of(64, 16, 8, 1024), options_of(64, 16, 1, 1024),
                                           options_of(6, 16, 8, 1024), options_of(6, 16, 8, 9), options_of(33, 3, 4, 7),
                                           options_of(100, 1, 6, 50)));

// Fault case E22.
TEST(LLMEngine, ASeededRequestIsTheSameBesideAnything) {
  const auto state = ParallelState::single();
  const SamplingParams params = seeded(0.8, 42, 32);
  const auto prompt = prompt_of(11);
  const auto alone = expected_text(prompt, params);
  for (int position : {0, 1, 2}) {
    FakeModel model;
    LLMEngine engine(model, *state, options_of(64, 16, 8, 64));
    SamplingParams unseeded = params;
    unseeded.seed.reset();
    RequestId id = 0;
    for (int i = 0; i < 3; ++i) {
      if (i == position) id = engine.add_request(prompt, params);
      engine.add_request(prompt_of(7, i), i == 0 ? unseeded : params);
    }
    EXPECT_EQ(run_to_end(engine).texts.at(id), alone) << position;
  }
}

TEST(LLMEngine, AsksForLogitsOnlyWhereATokenFollows) {
  const auto state = ParallelState::single();
  FakeModel model;
  LLMEngine engine(model, *state, options_of(64, 16, 4, 8));
  engine.add_request(prompt_of(20), seeded(0, 0, 2));
  run_to_end(engine);
  std::vector<std::pair<size_t, int64_t>> calls;
  for (const auto& call : model.calls) calls.push_back({call.token_ids.size(), call.logit_rows});
  EXPECT_EQ(calls, (std::vector<std::pair<size_t, int64_t>>{{8, 0}, {8, 0}, {4, 1}, {1, 1}}));
}

TEST(LLMEngine, StopsAtEosAndReportsIt) {
  const auto state = ParallelState::single();
  const auto prompt = prompt_of(9);
  const auto text = expected_text(prompt, seeded(0, 0, 10));
  FakeModel model({text[3]});
  LLMEngine engine(model, *state, options_of(64, 16, 4, 64));
  const RequestId id = engine.add_request(prompt, seeded(0, 0, 10));
  const Results results = run_to_end(engine);
  const size_t stop = std::find(text.begin(), text.end(), text[3]) - text.begin();
  EXPECT_EQ(results.texts.at(id), std::vector<int32_t>(text.begin(), text.begin() + stop + 1));
  EXPECT_EQ(results.reasons.at(id), FinishReason::stop);
}

TEST(LLMEngine, StopTokenIdsEndATextAndAreReported) {
  const auto state = ParallelState::single();
  const auto prompt = prompt_of(9);
  const auto text = expected_text(prompt, seeded(0, 0, 10));
  for (const bool ignore_eos : {false, true}) {
    FakeModel model({text[6]});
    LLMEngine engine(model, *state, options_of(64, 16, 4, 64));
    SamplingParams params = seeded(0, 0, 10);
    params.stop_token_ids = {96, text[4]};
    params.ignore_eos = ignore_eos;
    engine.add_request(prompt, params);
    std::vector<RequestOutput> last;
    while (engine.has_unfinished()) last = engine.step();
    EXPECT_EQ(last.at(0).token_ids, (std::vector<int32_t>{text[4]}));
    EXPECT_EQ(last.at(0).finish_reason, FinishReason::stop);
    EXPECT_EQ(last.at(0).stop_token, text[4]);
  }
}

TEST(LLMEngine, MinTokensKeepsATextFromEnding) {
  const auto state = ParallelState::single();
  const auto prompt = prompt_of(9);
  const auto text = expected_text(prompt, seeded(0, 0, 10));
  for (const int64_t min_tokens : {0, 1, 4, 10}) {
    FakeModel model({text[0]});
    LLMEngine engine(model, *state, options_of(64, 16, 4, 64));
    SamplingParams params = seeded(0, 0, 10);
    params.min_tokens = min_tokens;
    const RequestId id = engine.add_request(prompt, params);
    const auto tokens = run_to_end(engine).texts.at(id);
    EXPECT_GE(static_cast<int64_t>(tokens.size()), std::max<int64_t>(min_tokens, 1));
    EXPECT_EQ(tokens[0] == text[0], min_tokens == 0);
    for (int64_t i = 0; i < min_tokens; ++i) EXPECT_NE(tokens[i], text[0]) << i;
  }
}

// Log-probabilities of prompt and text are those of each place's own logits, however the prompt is cut into chunks and
// whether or not the request is recomputed.
TEST_P(EngineShapes, LogprobsAreThoseOfEveryPlace) {
  const auto state = ParallelState::single();
  FakeModel model;
  LLMEngine engine(model, *state, GetParam());
  SamplingParams params = seeded(0.9, 3, 30);
  params.logprobs = 2;
  params.prompt_logprobs = 1;
  std::map<RequestId, std::vector<int32_t>> tokens;
  std::map<RequestId, std::vector<TokenLogprobs>> logprobs;
  for (const int64_t length : {1, 2, 41, 17}) tokens[engine.add_request(prompt_of(length), params)] = prompt_of(length);
  while (engine.has_unfinished()) {
    for (const RequestOutput& output : engine.step()) {
      auto& all = logprobs[output.request];
      all.insert(all.end(), output.prompt_logprobs.begin(), output.prompt_logprobs.end());
      all.insert(all.end(), output.logprobs.begin(), output.logprobs.end());
      auto& ids = tokens[output.request];
      ids.insert(ids.end(), output.token_ids.begin(), output.token_ids.end());
    }
  }
  for (const auto& [id, ids] : tokens) {
    ASSERT_EQ(logprobs[id].size(), ids.size() - 1);
    for (size_t i = 1; i < ids.size(); ++i) {
      const bool of_prompt = i < ids.size() - 30;
      const auto logits = fake_logits({ids.begin(), ids.begin() + static_cast<int64_t>(i)});
      EXPECT_EQ(logprobs[id][i - 1], logprobs_of(logits, ids[i], of_prompt ? 1 : 2)) << id << " " << i;
    }
  }
}

// Fault case F01: the tokenizer's end-of-sequence token may be another than the config's; either ends a text.
TEST(LLMEngine, StopsAtTheTokenizersEosAsWell) {
  const auto state = ParallelState::single();
  const auto prompt = prompt_of(9);
  const auto text = expected_text(prompt, seeded(0, 0, 10));
  for (const auto& [config, tokenizer] : {std::pair{text[5], text[2]}, std::pair{text[2], text[5]}}) {
    FakeModel model({config});
    EngineOptions options = options_of(64, 16, 4, 64);
    options.eos_token_ids = {tokenizer};
    LLMEngine engine(model, *state, options);
    const RequestId id = engine.add_request(prompt, seeded(0, 0, 10));
    const Results results = run_to_end(engine);
    EXPECT_EQ(results.texts.at(id), std::vector<int32_t>(text.begin(), text.begin() + 3));
    EXPECT_EQ(results.reasons.at(id), FinishReason::stop);
  }
}

// Fault case D02: the request ends with an error; one that runs beside it does not.
TEST(LLMEngine, NonFiniteLogitsEndTheirRequestAlone) {
  const auto state = ParallelState::single();
  FakeModel model;
  model.poisoned_sequence = 12;
  LLMEngine engine(model, *state, options_of(64, 16, 4, 64));
  const RequestId bad = engine.add_request(prompt_of(10), seeded(0, 0, 16));
  const RequestId good = engine.add_request(prompt_of(13), seeded(0, 0, 16));
  const Results results = run_to_end(engine);
  EXPECT_EQ(results.reasons.at(bad), FinishReason::error);
  EXPECT_NE(results.errors.at(bad).find("non-finite logits"), std::string::npos);
  EXPECT_EQ(results.texts.at(bad).size(), 2u);
  EXPECT_EQ(results.texts.at(good), expected_text(prompt_of(13), seeded(0, 0, 16)));
}

TEST(LLMEngine, NonFiniteLogitsNameTheirLayerWhenAsked) {
  const auto state = ParallelState::single();
  FakeModel model;
  model.poisoned_sequence = 12;
  ::setenv("HEADWAY_CHECK_FINITE", "1", 1);
  LLMEngine engine(model, *state, options_of(64, 16, 4, 64));
  ::unsetenv("HEADWAY_CHECK_FINITE");
  const RequestId good = engine.add_request(prompt_of(13), seeded(0, 0, 16));
  const RequestId bad = engine.add_request(prompt_of(10), seeded(0, 0, 16));
  const Results results = run_to_end(engine);
  EXPECT_TRUE(results.errors.at(bad).ends_with("; the first come from the MLP of layer 1")) << results.errors.at(bad);
  EXPECT_EQ(results.texts.at(good), expected_text(prompt_of(13), seeded(0, 0, 16)));
}

TEST(LLMEngine, RefusesIdsOutsideOfTheVocabulary) {
  const auto state = ParallelState::single();
  FakeModel model;
  LLMEngine engine(model, *state, options_of(64, 16, 4, 64));
  EXPECT_THROW(engine.add_request({1, 97}, seeded(0, 0, 1)), ArgumentError);
  EXPECT_THROW(engine.add_request({-1}, seeded(0, 0, 1)), ArgumentError);
  EXPECT_THROW(engine.add_request({1}, seeded(-1, 0, 1)), ArgumentError);
  EXPECT_FALSE(engine.has_unfinished());
  EXPECT_TRUE(engine.step().empty());
}

TEST(LLMEngine, CancelReturnsTheBlocks) {
  const auto state = ParallelState::single();
  FakeModel model;
  LLMEngine engine(model, *state, options_of(8, 16, 4, 64));
  const RequestId id = engine.add_request(prompt_of(30), seeded(0, 0, 50));
  engine.step();
  EXPECT_EQ(engine.free_kv_blocks(), 6);
  EXPECT_TRUE(engine.cancel(id));
  EXPECT_EQ(engine.free_kv_blocks(), 8);
  EXPECT_FALSE(engine.has_unfinished());
}

TEST(LLMEngine, LimitsComeFromTheModelUnlessGiven) {
  const auto state = ParallelState::single();
  FakeModel model;
  EngineOptions options;
  options.max_num_seqs = 3;
  LLMEngine engine(model, *state, options);
  EXPECT_EQ(engine.max_model_len(), 256);
  EXPECT_EQ(engine.block_size(), 16);
  EXPECT_EQ(engine.kv_blocks(), 3 * 256 / 16);
  options.max_model_len = 257;
  EXPECT_THROW(LLMEngine(model, *state, options), ArgumentError);
  options.max_model_len = 100;
  options.kv_blocks = 0;
  EXPECT_THROW(LLMEngine(model, *state, options), ArgumentError);
}

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(LLMEngine, KvBlocksTakeMemoryOnlyWhenUsed) {
  const auto state = ParallelState::single();
  FakeModel model;
  const int64_t before = resident_bytes();
  LLMEngine engine(model, *state, options_of(1 << 20, 16, 4, 64));
  engine.add_request(prompt_of(30), seeded(0, 0, 20));
  run_to_end(engine);
  const int64_t whole = (int64_t{1} << 20) * kv_block_bytes(model, 16);
  EXPECT_GT(whole, 300 << 20);
  EXPECT_LT(resident_bytes() - before, whole / 8);
}

TEST(LLMEngine, RopeScalingStretchesTheLongestSequence) {
  ModelConfig config;
  config.max_position_embeddings = 32768;
  EXPECT_EQ(longest_sequence(config), 32768);
  config.rope.type = RopeType::yarn;
  config.rope.factor = 4;
  config.rope.original_max_position_embeddings = 32768;
  EXPECT_EQ(longest_sequence(config), 131072);
  config.rope.original_max_position_embeddings = 4096;
  EXPECT_EQ(longest_sequence(config), 32768);
  config.rope = {};
  config.rope.type = RopeType::linear;
  config.rope.factor = 2.5;
  EXPECT_EQ(longest_sequence(config), 81920);
}

}  // namespace
}  // namespace headway
