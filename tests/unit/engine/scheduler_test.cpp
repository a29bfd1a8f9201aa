#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <numeric>

#include "headway/base/error.h"

namespace headway {
namespace {

constexpr int64_t kBlockSize = 16;

std::vector<int32_t> prompt_of(int64_t tokens, int32_t first = 100) {
  std::vector<int32_t> prompt(tokens);
  std::iota(prompt.begin(), prompt.end(), first);
  return prompt;
}

SamplingParams max_tokens(int64_t count) {
  SamplingParams params;
  params.max_tokens = count;
  return params;
}

/// A stand-in for the model: the next token is a hash of every token before it.
int32_t next_token(const std::vector<int32_t>& tokens) {
  uint32_t hash = 2166136261u;
  for (int32_t token : tokens) hash = (hash ^ static_cast<uint32_t>(token)) * 16777619u;
  return static_cast<int32_t>(hash % 50000);
}

std::vector<SampledToken> run(const ScheduledBatch& batch) {
  std::vector<SampledToken> tokens;
  for (const ScheduledSequence& sequence : batch.sequences) {
    if (sequence.samples()) tokens.push_back({next_token(sequence.request->token_ids), ""});
  }
  return tokens;
}

using Texts = std::map<RequestId, std::vector<int32_t>>;

struct Finished {
  Texts texts;
  std::map<RequestId, FinishReason> reasons;
};

Finished run_to_end(Scheduler& scheduler, int max_steps = 10000) {
  Finished finished;
  for (int step = 0; scheduler.has_unfinished(); ++step) {
    if (step == max_steps) throw Error("the scheduler does not finish");
    const ScheduledBatch batch = scheduler.schedule();
    if (batch.empty()) throw Error("the scheduler has work and schedules none");
    for (const RequestOutput& output : scheduler.update(batch, run(batch))) {
      auto& text = finished.texts[output.request];
      text.insert(text.end(), output.token_ids.begin(), output.token_ids.end());
      if (output.finish_reason) finished.reasons[output.request] = *output.finish_reason;
    }
  }
  return finished;
}

std::vector<int32_t> text_alone(std::vector<int32_t> tokens, int64_t count) {
  std::vector<int32_t> text;
  for (int64_t i = 0; i < count; ++i) {
    text.push_back(next_token(tokens));
    tokens.push_back(text.back());
  }
  return text;
}

std::map<RequestId, int64_t> tokens_of(const ScheduledBatch& batch) {
  std::map<RequestId, int64_t> tokens;
  for (const ScheduledSequence& sequence : batch.sequences) tokens[sequence.request->id] = sequence.num_tokens;
  return tokens;
}

using Shares = std::map<RequestId, int64_t>;

TEST(Scheduler, CutsALongPromptIntoChunksBesideDecodes) {
  Scheduler scheduler({512, 8, 20, {}}, {64, kBlockSize});
  const RequestId first = scheduler.add(prompt_of(5), max_tokens(10), 0);
  auto batch = scheduler.schedule();
  EXPECT_EQ(tokens_of(batch), (Shares{{first, 5}}));
  scheduler.update(batch, run(batch));
  const RequestId longer = scheduler.add(prompt_of(50), max_tokens(10), 0);
  for (const int64_t chunk : {19, 19, 12}) {
    batch = scheduler.schedule();
    EXPECT_EQ(tokens_of(batch), (Shares{{first, 1}, {longer, chunk}}));
    EXPECT_EQ(batch.sequences.front().request->id, first);
    EXPECT_EQ(scheduler.update(batch, run(batch)).size(), chunk == 12 ? 2u : 1u);
  }
  EXPECT_EQ(tokens_of(scheduler.schedule()), (Shares{{first, 1}, {longer, 1}}));
}

TEST(Scheduler, AdmitsInOrderOfArrivalUpToMaxNumSeqs) {
  Scheduler scheduler({512, 2, 100, {}}, {64, kBlockSize});
  const RequestId a = scheduler.add(prompt_of(3), max_tokens(1), 0);
  const RequestId b = scheduler.add(prompt_of(4), max_tokens(5), 0);
  const RequestId c = scheduler.add(prompt_of(5), max_tokens(5), 0);
  auto batch = scheduler.schedule();
  EXPECT_EQ(tokens_of(batch), (Shares{{a, 3}, {b, 4}}));
  EXPECT_EQ(scheduler.num_waiting(), 1);
  scheduler.update(batch, run(batch));  // a ends, so c joins at the next step
  EXPECT_EQ(tokens_of(scheduler.schedule()), (Shares{{b, 1}, {c, 5}}));
}

TEST(Scheduler, ALaterRequestDoesNotOvertakeOneThatWaitsForBlocks) {
  Scheduler scheduler({512, 8, 200, {}}, {4, kBlockSize});
  const RequestId a = scheduler.add(prompt_of(40), max_tokens(4), 0);
  scheduler.add(prompt_of(30), max_tokens(4), 0);  // needs two blocks, one is free
  scheduler.add(prompt_of(3), max_tokens(4), 0);
  EXPECT_EQ(tokens_of(scheduler.schedule()), (Shares{{a, 40}}));
  EXPECT_EQ(scheduler.num_waiting(), 2);
}

TEST(Scheduler, PreemptionChangesNoResult) {
  Scheduler scheduler({512, 8, 24, {}}, {9, kBlockSize});
  std::map<RequestId, std::vector<int32_t>> prompts;
  for (int64_t tokens : {20, 31, 7, 40, 1}) {
    const auto prompt = prompt_of(tokens, static_cast<int32_t>(1000 * tokens));
    prompts[scheduler.add(prompt, max_tokens(45), 0)] = prompt;
  }
  const Finished finished = run_to_end(scheduler);
  EXPECT_GE(scheduler.num_preemptions(), 2);
  for (const auto& [id, prompt] : prompts) {
    EXPECT_EQ(finished.texts.at(id), text_alone(prompt, 45)) << id;
    EXPECT_EQ(finished.reasons.at(id), FinishReason::length);
  }
  EXPECT_EQ(scheduler.free_blocks(), 9);
}

TEST(Scheduler, BudgetAndNeighboursChangeNoResult) {
  const auto prompt = prompt_of(37);
  for (int64_t budget : {4, 5, 16, 1000}) {
    for (int neighbours : {0, 1, 11}) {
      Scheduler scheduler({512, 4, budget, {}}, {32, kBlockSize});
      for (int i = 0; i < neighbours; ++i) scheduler.add(prompt_of(3 + i, 7 * i), max_tokens(20 + i), 0);
      const RequestId id = scheduler.add(prompt, max_tokens(33), 0);
      EXPECT_EQ(run_to_end(scheduler).texts.at(id), text_alone(prompt, 33)) << budget << " " << neighbours;
    }
  }
}

// Fault case E14: pool 8 x 16. A never fits, B fits but cannot grow to its end, C is short.
TEST(Scheduler, ARequestThatOutgrowsThePoolEndsWithoutBlockingOthers) {
  Scheduler scheduler({256, 8, 256, {}}, {8, kBlockSize});
  try {
    scheduler.add(prompt_of(150), max_tokens(10), 0);
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("150 tokens, but the KV cache holds 128"), std::string::npos);
  }
  SamplingParams params = max_tokens(50);
  params.ignore_eos = true;
  const RequestId b = scheduler.add(prompt_of(100), params, 0);
  const RequestId c = scheduler.add(prompt_of(10), max_tokens(5), 0);
  const Finished finished = run_to_end(scheduler, 60);
  EXPECT_EQ(finished.reasons.at(b), FinishReason::length);
  EXPECT_EQ(finished.texts.at(b), text_alone(prompt_of(100), 29));  // 100 + 28 in the cache, and the last one
  EXPECT_EQ(finished.texts.at(c).size(), 5u);
  EXPECT_LE(scheduler.num_preemptions(), 1);
}

// Fault cases E12 and E13: the numbers as they are, none of them negative.
TEST(Scheduler, RefusesWhatExceedsMaxModelLenWithTheNumbers) {
  Scheduler scheduler({512, 8, 256, {}}, {64, kBlockSize});
  const auto message_of = [&](int64_t prompt, int64_t count) -> std::string {
    try {
      scheduler.add(prompt_of(prompt), max_tokens(count), 0);
    } catch (const ArgumentError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message_of(600, 16),
            "the prompt has 600 tokens, which leaves no room for a new one within max_model_len 512");
  EXPECT_EQ(message_of(8, 505),
            "the prompt has 8 tokens and max_tokens is 505: together they exceed max_model_len 512");
  EXPECT_EQ(message_of(8, 504), "accepted");
  EXPECT_EQ(message_of(511, 1), "accepted");
  EXPECT_EQ(message_of(0, 1), "the prompt has no tokens");
}

TEST(Scheduler, CancelFreesBlocksForTheNextStep) {
  Scheduler scheduler({512, 8, 256, {}}, {4, kBlockSize});
  const RequestId a = scheduler.add(prompt_of(60), max_tokens(4), 0);
  const RequestId b = scheduler.add(prompt_of(50, 900), max_tokens(4), 0);
  auto batch = scheduler.schedule();
  scheduler.update(batch, run(batch));
  EXPECT_EQ(scheduler.free_blocks(), 0);
  EXPECT_TRUE(scheduler.cancel(a));
  EXPECT_FALSE(scheduler.cancel(a));
  EXPECT_EQ(tokens_of(scheduler.schedule()), (Shares{{b, 50}}));
  EXPECT_TRUE(scheduler.cancel(b));
  EXPECT_FALSE(scheduler.has_unfinished());
  EXPECT_EQ(scheduler.free_blocks(), 4);
  EXPECT_TRUE(scheduler.schedule().empty());
}

// Fault case F02: any id of the list ends a request, and it is part of the output.
TEST(Scheduler, AnyEosIdStops) {
  Scheduler scheduler({64, 4, 16, {151645, 151643}}, {8, kBlockSize});
  const RequestId id = scheduler.add(prompt_of(2), max_tokens(40), 0);
  std::vector<int32_t> text;
  std::optional<FinishReason> reason;
  for (const int32_t forced : {26194, 13, 151643, 33975}) {
    if (!scheduler.has_unfinished()) break;
    const auto outputs = scheduler.update(scheduler.schedule(), {{forced, ""}});
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0].request, id);
    text.insert(text.end(), outputs[0].token_ids.begin(), outputs[0].token_ids.end());
    reason = outputs[0].finish_reason;
  }
  EXPECT_EQ(text, (std::vector<int32_t>{26194, 13, 151643}));
  EXPECT_EQ(reason, FinishReason::stop);
}

// Fault case E35.
TEST(Scheduler, IgnoreEosRunsToTheLimit) {
  Scheduler scheduler({64, 4, 16, {7, 9}}, {8, kBlockSize});
  SamplingParams params = max_tokens(50);
  params.ignore_eos = true;
  scheduler.add(prompt_of(2), params, 0);
  int steps = 0;
  std::optional<FinishReason> reason;
  while (scheduler.has_unfinished()) {
    reason = scheduler.update(scheduler.schedule(), {{++steps == 3 ? 9 : 40, ""}}).at(0).finish_reason;
  }
  EXPECT_EQ(steps, 50);
  EXPECT_EQ(reason, FinishReason::length);
}

// Fault case D02: a request whose logits are no numbers ends with that error; its neighbour goes on.
TEST(Scheduler, ASamplingErrorEndsOnlyItsRequest) {
  Scheduler scheduler({64, 4, 16, {}}, {8, kBlockSize});
  const RequestId bad = scheduler.add(prompt_of(2), max_tokens(5), 0);
  const RequestId good = scheduler.add(prompt_of(3), max_tokens(5), 0);
  const auto outputs = scheduler.update(scheduler.schedule(), {{0, "non-finite logits"}, {8, ""}});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].request, bad);
  EXPECT_EQ(outputs[0].finish_reason, FinishReason::error);
  EXPECT_EQ(outputs[0].error, "non-finite logits");
  EXPECT_TRUE(outputs[0].token_ids.empty());
  EXPECT_EQ(outputs[1].request, good);
  EXPECT_FALSE(outputs[1].finish_reason);
  EXPECT_EQ(scheduler.num_running(), 1);
}

/// Sequences of each replica in a batch, which must be in the order of the replicas.
std::vector<int64_t> sequences_of_replicas(const ScheduledBatch& batch, int64_t replicas) {
  std::vector<int64_t> counts(replicas, 0);
  int64_t last = 0;
  for (const ScheduledSequence& sequence : batch.sequences) {
    EXPECT_GE(sequence.request->replica, last);
    last = sequence.request->replica;
    ++counts.at(last);
  }
  return counts;
}

TEST(ReplicasThatOwnSequences, ShareTheRequestsEvenly) {
  Scheduler scheduler({512, 8, 200, {}}, {8, kBlockSize, 3});
  for (int i = 0; i < 7; ++i) scheduler.add(prompt_of(5 + i, 100 * i), max_tokens(4), 0);
  EXPECT_EQ(sequences_of_replicas(scheduler.schedule(), 3), (std::vector<int64_t>{3, 2, 2}));
  EXPECT_EQ(scheduler.free_blocks(), 3 * 8 - 7);
}

TEST(ReplicasThatOwnSequences, TakeARequestWhereItsBlocksAre) {
  Scheduler scheduler({512, 8, 500, {}}, {4, kBlockSize, 2});
  const RequestId a = scheduler.add(prompt_of(60), max_tokens(4), 0);       // fills a replica
  const RequestId b = scheduler.add(prompt_of(20, 900), max_tokens(4), 0);  // takes half of the other
  const RequestId c = scheduler.add(prompt_of(30, 500), max_tokens(4), 0);  // fits beside b alone
  const RequestId d = scheduler.add(prompt_of(17, 700), max_tokens(4), 0);
  const auto batch = scheduler.schedule();
  EXPECT_EQ(tokens_of(batch), (Shares{{a, 60}, {b, 20}, {c, 30}}));
  EXPECT_EQ(sequences_of_replicas(batch, 2), (std::vector<int64_t>{1, 2}));
  scheduler.update(batch, run(batch));
  EXPECT_EQ(scheduler.free_blocks(), 0);
  EXPECT_TRUE(scheduler.cancel(a));
  EXPECT_EQ(tokens_of(scheduler.schedule()).at(d), 17);
}

// A replica holds its own sequences only: the same set needs half as many blocks on each of two.
TEST(ReplicasThatOwnSequences, NeedTheirShareOfTheKvBlocks) {
  const auto preemptions = [](const KVBlocks& blocks) {
    Scheduler scheduler({512, 8, 200, {}, {}, false}, blocks);
    for (int i = 0; i < 8; ++i) scheduler.add(prompt_of(20, 100 * i), max_tokens(12), 0);  // two blocks each
    const Finished finished = run_to_end(scheduler);
    EXPECT_EQ(finished.texts.size(), 8u);
    return scheduler.num_preemptions();
  };
  const auto all_run_at_once = [](const KVBlocks& blocks) {
    Scheduler scheduler({512, 8, 200, {}, {}, false}, blocks);
    for (int i = 0; i < 8; ++i) scheduler.add(prompt_of(20, 100 * i), max_tokens(12), 0);
    return scheduler.schedule().sequences.size() == 8;
  };
  EXPECT_TRUE(all_run_at_once({16, kBlockSize, 1}));
  EXPECT_FALSE(all_run_at_once({15, kBlockSize, 1}));
  EXPECT_TRUE(all_run_at_once({8, kBlockSize, 2}));
  EXPECT_FALSE(all_run_at_once({7, kBlockSize, 2}));
  EXPECT_EQ(preemptions({8, kBlockSize, 2}), 0);
}

TEST(ReplicasThatOwnSequences, PreemptTheirOwn) {
  Scheduler scheduler({512, 8, 500, {}}, {5, kBlockSize, 2});
  std::map<RequestId, std::vector<int32_t>> prompts;
  for (int64_t tokens : {20, 31, 7, 40, 1, 25}) {
    const auto prompt = prompt_of(tokens, static_cast<int32_t>(1000 * tokens));
    prompts[scheduler.add(prompt, max_tokens(38), 0)] = prompt;
  }
  const Finished finished = run_to_end(scheduler);
  EXPECT_GE(scheduler.num_preemptions(), 2);
  for (const auto& [id, prompt] : prompts) EXPECT_EQ(finished.texts.at(id), text_alone(prompt, 38)) << id;
  EXPECT_EQ(scheduler.free_blocks(), 10);
}

TEST(Scheduler, LimitsThatContradictAreRefused) {
  EXPECT_THROW(Scheduler({512, 8, 7, {}}, {8, 16}), ArgumentError);
  EXPECT_THROW(Scheduler({1, 8, 8, {}}, {8, 16}), ArgumentError);
  EXPECT_THROW(Scheduler({512, 0, 8, {}}, {8, 16}), ArgumentError);
}

}  // namespace
}  // namespace headway
