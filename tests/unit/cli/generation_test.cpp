#include "cli/generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/errors.h"
#include "headway/base/error.h"
#include "support/fake_model.h"

namespace headway {
namespace {

using testing::FakeModel;

Generation run(FakeModel& model, int64_t max_tokens, std::optional<int64_t> kv_blocks = {}) {
  const auto state = ParallelState::single();
  EngineOptions options;
  options.kv_blocks = kv_blocks;
  LLMEngine engine(model, *state, options);
  TextParams greedy;
  greedy.sampling.max_tokens = max_tokens;
  return generate(engine, {}, {4, 8, 15}, greedy, true);
}

std::string ids_text(const std::vector<int32_t>& ids, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (i > 0 ? "," : "") + std::to_string(ids[i]);
  return text;
}

TEST(Generation, StreamsEveryTokenUpToTheLimit) {
  FakeModel model;
  const Generation generation = run(model, 9);
  EXPECT_EQ(generation.token_ids.size(), 9u);
  EXPECT_EQ(generation.finish_reason, FinishReason::length);
  EXPECT_EQ(generation.prompt_tokens, 3);
  EXPECT_EQ(generation.text, ids_text(generation.token_ids, 9));
}

/// What `generate` says while it generates so many tokens with a cache of so many blocks.
std::string said_by(int64_t max_tokens, int64_t kv_blocks, size_t expected_tokens) {
  FakeModel model;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(model, max_tokens, kv_blocks).token_ids.size(), expected_tokens);
  return ::testing::internal::GetCapturedStderr();
}

TEST(Generation, ACacheThatEndsTheTextIsSaid) {
  EXPECT_EQ(said_by(14, 1, 14), "");  // 3 tokens of the prompt, and all new ones but the last
  EXPECT_THAT(said_by(15, 1, 14),
              ::testing::HasSubstr("warning: the KV cache holds 16 tokens (1 blocks of 16): after a prompt of 3 a text "
                                   "ends with 14 new ones, where 15 are allowed"));
}

TEST(Generation, APromptThatTheCacheCannotHoldIsAUsageError) {
  FakeModel model;
  const auto state = ParallelState::single();
  EngineOptions options;
  options.kv_blocks = 1;
  LLMEngine engine(model, *state, options);
  EXPECT_THROW(generate(engine, {}, std::vector<int32_t>(17, 5), {}, true), UsageError);
}

// Fault case F01: the end marker counts as a token and is no text.
TEST(Generation, TheEndOfSequenceTokenIsNoText) {
  FakeModel endless;
  const std::vector<int32_t> tokens = run(endless, 9).token_ids;
  const size_t stop = std::find(tokens.begin(), tokens.end(), tokens[5]) - tokens.begin();
  FakeModel model({tokens[5]});
  const Generation generation = run(model, 9);
  EXPECT_EQ(generation.finish_reason, FinishReason::stop);
  EXPECT_EQ(generation.token_ids, std::vector<int32_t>(tokens.begin(), tokens.begin() + stop + 1));
  EXPECT_EQ(generation.text, ids_text(tokens, stop));
}

// Fault case D02: an error that says why, not a text of the token with id 0.
TEST(Generation, NonFiniteLogitsAreAnError) {
  FakeModel model;
  model.poisoned_sequence = 6;
  EXPECT_THROW(run(model, 9), Error);
}

}  // namespace
}  // namespace headway
