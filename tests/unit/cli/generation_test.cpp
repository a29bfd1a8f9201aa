#include "cli/generation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "headway/base/error.h"
#include "support/fake_model.h"

namespace headway {
namespace {

using testing::FakeModel;

SamplingParams greedy(int64_t max_tokens) {
  SamplingParams params;
  params.max_tokens = max_tokens;
  return params;
}

Generation run(FakeModel& model, int64_t max_tokens, TextStream& stream) {
  const auto state = ParallelState::single();
  LLMEngine engine(model, *state);
  return generate(engine, {4, 8, 15}, greedy(max_tokens), stream);
}

std::string ids_text(const std::vector<int32_t>& ids, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (i > 0 ? "," : "") + std::to_string(ids[i]);
  return text;
}

TEST(Generation, StreamsEveryTokenUpToTheLimit) {
  FakeModel model;
  TextStream stream({}, true);
  const Generation generation = run(model, 9, stream);
  EXPECT_EQ(generation.token_ids.size(), 9u);
  EXPECT_EQ(generation.finish_reason, FinishReason::length);
  EXPECT_EQ(generation.prompt_tokens, 3);
  EXPECT_EQ(stream.text(), ids_text(generation.token_ids, 9));
}

// Fault case F01: the end marker counts as a token and is no text.
TEST(Generation, TheEndOfSequenceTokenIsNoText) {
  FakeModel endless;
  TextStream unused({}, true);
  const std::vector<int32_t> tokens = run(endless, 9, unused).token_ids;
  const size_t stop = std::find(tokens.begin(), tokens.end(), tokens[5]) - tokens.begin();
  FakeModel model({tokens[5]});
  TextStream stream({}, true);
  const Generation generation = run(model, 9, stream);
  EXPECT_EQ(generation.finish_reason, FinishReason::stop);
  EXPECT_EQ(generation.token_ids, std::vector<int32_t>(tokens.begin(), tokens.begin() + stop + 1));
  EXPECT_EQ(stream.text(), ids_text(tokens, stop));
}

// Fault case D02: an error that says why, not a text of the token with id 0.
TEST(Generation, NonFiniteLogitsAreAnError) {
  FakeModel model;
  model.poisoned_sequence = 6;
  TextStream stream({}, true);
  EXPECT_THROW(run(model, 9, stream), Error);
}

}  // namespace
}  // namespace headway
