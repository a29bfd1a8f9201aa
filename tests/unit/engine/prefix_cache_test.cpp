#include "engine/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "engine/block_manager.h"
#include "engine/scheduler.h"
#include "headway/base/error.h"
#include "headway/engine/llm_engine.h"
#include "support/expect_error.h"
#include "support/fake_model.h"

namespace headway {
namespace {

using test::error_of;
using test::HasAll;
using testing::FakeModel;

using Tokens = std::vector<int32_t>;

/// A hash that cannot tell anything from anything.
PrefixHash constant_hash() {
  return [](PrefixId, std::span<const int32_t>) { return uint64_t{7}; };
}

Tokens counted(int32_t count, int32_t first = 100) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

class EveryHash : public ::testing::TestWithParam<bool> {
 protected:
  static PrefixHash hash() { return GetParam() ? constant_hash() : salted_prefix_hash(); }
};
INSTANTIATE_TEST_SUITE_P(SaltedAndConstant, EveryHash, ::testing::Bool());

// Fault case D12: tokens and prefix decide, whatever the hash says.
TEST_P(EveryHash, FindsEqualContentsOnly) {
  PrefixCache cache(hash());
  const Tokens a{1, 2, 3}, b{1, 2, 4};
  const PrefixId first = cache.insert(kNoPrefix, a, 10);
  const PrefixId second = cache.insert(first, a, 11);
  EXPECT_NE(first, second);
  EXPECT_EQ(cache.find(kNoPrefix, a)->block, 10);
  EXPECT_EQ(cache.find(first, a)->block, 11);
  EXPECT_EQ(cache.find(first, a)->id, second);
  EXPECT_FALSE(cache.find(second, a));
  EXPECT_FALSE(cache.find(kNoPrefix, b));
  EXPECT_FALSE(cache.find(kNoPrefix, Tokens{1, 2}));
  EXPECT_EQ(cache.insert(kNoPrefix, a, 12), first);  // known already, so block 12 is not
  EXPECT_FALSE(cache.knows(12));
  cache.erase(10);
  EXPECT_FALSE(cache.find(kNoPrefix, a));
  EXPECT_EQ(cache.find(first, a)->block, 11);
  EXPECT_NE(cache.insert(kNoPrefix, a, 12), first);  // new contents never get the id of forgotten ones
}

TEST(PrefixHash, HasASaltAndSeesEveryToken) {
  const PrefixHash one = salted_prefix_hash(), other = salted_prefix_hash();
  const Tokens tokens = counted(16);
  EXPECT_EQ(one(3, tokens), one(3, tokens));
  EXPECT_NE(one(3, tokens), other(3, tokens));
  EXPECT_NE(one(3, tokens), one(4, tokens));
  for (size_t i = 0; i < tokens.size(); ++i) {
    Tokens changed = tokens;
    changed[i] += 1;
    EXPECT_NE(one(3, changed), one(3, tokens)) << i;
  }
}

TEST(BlockManager, SharesKnownBlocksAndKeepsThemWhenNobodyUsesThem) {
  BlockManager blocks(6, 4);
  const Tokens tokens = counted(11);
  BlockTable a, b;
  KnownPrefix known;
  ASSERT_TRUE(blocks.grow(a, 11));
  blocks.remember(a, tokens, known);
  EXPECT_EQ(known.blocks, 2);
  EXPECT_EQ(blocks.share_prefix(b, counted(9)).blocks, 2);
  EXPECT_EQ(b, (BlockTable{a[0], a[1]}));
  EXPECT_EQ(blocks.free_blocks(), 3);
  blocks.release(a);
  EXPECT_EQ(blocks.free_blocks(), 4);
  blocks.release(b);
  EXPECT_EQ(blocks.free_blocks(), 6);
  EXPECT_EQ(blocks.share_prefix(b, counted(7)).blocks, 1);
  EXPECT_EQ(blocks.free_blocks(), 5);
}

TEST(BlockManager, TakesBlankBlocksFirstThenTheLongestUnusedAndLastOfASequence) {
  BlockManager blocks(5, 4);
  BlockTable a, b, c;
  KnownPrefix known_a, known_b;
  ASSERT_TRUE(blocks.grow(a, 8) && blocks.grow(b, 8));
  blocks.remember(a, counted(8, 100), known_a);
  blocks.remember(b, counted(8, 200), known_b);
  blocks.release(b);
  blocks.release(a);
  const auto known_blocks = [&](int32_t first) {
    BlockTable table;
    const int64_t count = blocks.share_prefix(table, counted(8, first)).blocks;
    blocks.release(table);
    return count;
  };
  ASSERT_TRUE(blocks.grow(c, 4));
  EXPECT_EQ(known_blocks(200), 2);
  EXPECT_EQ(known_blocks(100), 2);  // a is now the one that was used last
  ASSERT_TRUE(blocks.grow(c, 8));
  EXPECT_EQ(known_blocks(200), 1);  // b's second block is gone
  EXPECT_EQ(known_blocks(100), 2);
  ASSERT_TRUE(blocks.grow(c, 16));
  EXPECT_EQ(known_blocks(200), 0);
  EXPECT_EQ(known_blocks(100), 1);
  EXPECT_FALSE(blocks.grow(c, 24));
  EXPECT_EQ(c.size(), 4u);
}

Tokens prompt_of(int64_t tokens) {
  Tokens prompt;
  for (int32_t i = 0; i < tokens; ++i) prompt.push_back((i * 31 + 5) % testing::kFakeVocab);
  return prompt;
}

struct Results {
  std::map<RequestId, Tokens> texts;
  EngineStats stats;
};

/// Runs prompts in two waves, so that the second finds what the first left behind.
Results run(const std::vector<Tokens>& prompts, bool prefix_caching, int64_t kv_blocks) {
  const auto state = ParallelState::single();
  FakeModel model;
  EngineOptions options;
  options.kv_blocks = kv_blocks;
  options.max_num_seqs = 3;
  options.max_batch_tokens = 20;
  options.prefix_caching = prefix_caching;
  LLMEngine engine(model, *state, options);
  SamplingParams params;
  params.max_tokens = 21;
  Results result;
  for (int wave = 0; wave < 2; ++wave) {
    for (const Tokens& prompt : prompts) engine.add_request(prompt, params);
    while (engine.has_unfinished()) {
      for (const RequestOutput& output : engine.step()) {
        auto& text = result.texts[output.request];
        text.insert(text.end(), output.token_ids.begin(), output.token_ids.end());
      }
    }
  }
  result.stats = engine.stats();
  EXPECT_EQ(engine.free_kv_blocks(), kv_blocks);
  return result;
}

// Fault case D12: prompts that are equal but for the last token of a block, and others that share whole blocks.
TEST(PrefixCaching, ChangesNoResult) {
  std::vector<Tokens> prompts{prompt_of(40), prompt_of(32), prompt_of(33), prompt_of(16), prompt_of(17), prompt_of(70)};
  for (const size_t place : {15, 16, 31}) {
    prompts.push_back(prompt_of(40));
    prompts.back()[place] = 96;
  }
  for (const int64_t kv_blocks : {64, 12, 7}) {
    const Results with = run(prompts, true, kv_blocks);
    const Results without = run(prompts, false, kv_blocks);
    EXPECT_EQ(with.texts, without.texts) << kv_blocks;
    EXPECT_EQ(without.stats.cached_tokens, 0);
    EXPECT_GT(with.stats.cached_tokens, 100) << kv_blocks;
    EXPECT_LT(with.stats.computed_tokens, without.stats.computed_tokens);
  }
}

TEST(PrefixCaching, ARepeatedPromptComputesItsLastBlockOnly) {
  const auto state = ParallelState::single();
  FakeModel model;
  LLMEngine engine(model, *state);
  SamplingParams params;
  params.max_tokens = 1;
  for (const int64_t computed : {48, 16, 16}) {  // of three blocks two are shared: one token at least is computed
    const int64_t before = engine.stats().computed_tokens;
    engine.add_request(prompt_of(48), params);
    while (engine.has_unfinished()) engine.step();
    EXPECT_EQ(engine.stats().computed_tokens - before, computed);
  }
}

TEST(PrefixCaching, PromptLogprobsAreComputedAfresh) {
  const auto state = ParallelState::single();
  FakeModel model;
  LLMEngine engine(model, *state);
  SamplingParams params;
  params.prompt_logprobs = 0;
  for (int i = 0; i < 2; ++i) {
    engine.add_request(prompt_of(50), params);
    std::vector<TokenLogprobs> logprobs;
    while (engine.has_unfinished()) {
      for (const RequestOutput& output : engine.step()) {
        logprobs.insert(logprobs.end(), output.prompt_logprobs.begin(), output.prompt_logprobs.end());
      }
    }
    EXPECT_EQ(logprobs.size(), 49u);
  }
}

// Fault case E33, in the engine: one runs, four wait, five are refused; later there is room again.
TEST(Queue, RefusesMoreThanMayWait) {
  const auto state = ParallelState::single();
  FakeModel model;
  EngineOptions options;
  options.max_num_seqs = 1;
  options.max_queue = 4;
  LLMEngine engine(model, *state, options);
  SamplingParams params;
  params.max_tokens = 40;
  engine.add_request(prompt_of(5), params);
  engine.step();
  int refused = 0;
  for (int i = 0; i < 9; ++i) {
    try {
      engine.add_request(prompt_of(5), params);
    } catch (const QueueFull& full) {
      EXPECT_THAT(full.what(), HasAll("5 requests", "max_num_seqs 1", "max_queue 4"));
      ++refused;
    }
  }
  EXPECT_EQ(refused, 5);
  EXPECT_EQ(engine.stats().running, 1);
  EXPECT_EQ(engine.stats().waiting, 4);
  while (engine.has_unfinished()) engine.step();
  engine.add_request(prompt_of(5), params);
  options.max_queue = -1;
  EXPECT_THAT(error_of<ArgumentError>([&] { LLMEngine(model, *state, options); }), HasAll("max_queue is -1"));
}

}  // namespace
}  // namespace headway
