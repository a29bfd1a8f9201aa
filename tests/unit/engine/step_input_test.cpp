#include "engine/step_input.h"

#include <gtest/gtest.h>

#include "headway/base/error.h"

namespace headway {
namespace {

StepInput two_sequences() {
  StepInput input;
  input.sequences.push_back({{11, 12, 13}, 6, {7, 2}, 0});  // the second chunk of a prompt
  input.sequences.push_back({{21}, 5, {4, 9}, 1});          // a decode
  return input;
}

TEST(StepInput, SurvivesTheMessage) {
  EXPECT_EQ(parse_step_input(serialise(two_sequences())), two_sequences());
  StepInput stop;
  stop.stop = true;
  EXPECT_EQ(parse_step_input(serialise(stop)), stop);
  EXPECT_EQ(serialise(stop).size(), 8u);
}

TEST(StepInput, EveryTruncationAndTrailingWordIsRefused) {
  const std::string bytes = serialise(two_sequences());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(parse_step_input(std::string_view(bytes).substr(0, length)), CommunicationError) << length;
  }
  EXPECT_THROW(parse_step_input(bytes + std::string(4, '\0')), CommunicationError);
  EXPECT_THROW(parse_step_input(std::string(4, '\0') + std::string(4, '\x7f')), CommunicationError);
}

TEST(StepInput, LaysTokensOutInSequencesAndSlots) {
  const StepInput input = two_sequences();
  EXPECT_EQ(input.token_ids(), (std::vector<int64_t>{11, 12, 13, 21}));
  EXPECT_EQ(input.logit_rows(), (std::vector<int64_t>{3}));
  const AttentionBatch batch = input.attention_batch(4);
  EXPECT_EQ(batch.positions, (std::vector<int64_t>{3, 4, 5, 4}));
  EXPECT_EQ(batch.slots, (std::vector<int64_t>{7 * 4 + 3, 2 * 4, 2 * 4 + 1, 9 * 4}));
  EXPECT_EQ(batch.query_starts, (std::vector<int64_t>{0, 3, 4}));
  EXPECT_EQ(batch.context_lengths, (std::vector<int64_t>{6, 5}));
  EXPECT_EQ(batch.block_tables, (std::vector<std::vector<int32_t>>{{7, 2}, {4, 9}}));
}

TEST(StepInput, OfABatchTakesPendingTokensAndTheBlocksOfTheirContext) {
  Request request;
  request.token_ids = {31, 32, 33, 34, 35, 36, 37};
  request.prompt_tokens = 7;
  request.computed_tokens = 2;
  request.block_table = {5, 3, 8, 1};
  const StepInput chunk = StepInput::of({{{&request, 3}}}, 2);
  EXPECT_EQ(chunk.sequences, (std::vector<SequenceInput>{{{33, 34, 35}, 5, {5, 3, 8}, 0}}));
  const StepInput rest = StepInput::of({{{&request, 5}}}, 2);
  EXPECT_EQ(rest.sequences, (std::vector<SequenceInput>{{{33, 34, 35, 36, 37}, 7, {5, 3, 8, 1}, 1}}));
}

TEST(StepInput, TellsReplicasApart) {
  StepInput input = two_sequences();
  input.sequences.push_back({{31, 32}, 2, {6}, 2, 2});
  input.sequences[1].replica = 2;
  EXPECT_EQ(parse_step_input(serialise(input)), input);
  EXPECT_EQ(input.token_ids(), (std::vector<int64_t>{11, 12, 13, 21, 31, 32}));
  EXPECT_EQ(input.replica_tokens(3), (std::vector<int64_t>{3, 0, 3}));
  EXPECT_EQ(input.replica_logit_rows(3), (std::vector<int64_t>{0, 0, 3}));
  EXPECT_TRUE(input.logit_rows(0).empty());
  EXPECT_EQ(input.logit_rows(2), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(input.attention_batch(4, 1).num_tokens(), 0);
  const AttentionBatch batch = input.attention_batch(4, 2);
  EXPECT_EQ(batch.positions, (std::vector<int64_t>{4, 0, 1}));
  EXPECT_EQ(batch.query_starts, (std::vector<int64_t>{0, 1, 3}));
  EXPECT_EQ(batch.block_tables, (std::vector<std::vector<int32_t>>{{4, 9}, {6}}));
}

}  // namespace
}  // namespace headway
