#include "headway/engine/text_generator.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "engine/stop_matcher.h"
#include "engine/text_stream.h"
#include "headway/base/error.h"
#include "support/expect_error.h"
#include "support/fake_model.h"
#include "unit/tokenizer/small_tokenizer.h"

namespace headway {
namespace {

using test::error_of;
using test::HasAll;
using testing::FakeModel;

std::string joined(StopMatcher matcher, const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += matcher.push(piece);
  return text + matcher.finish();
}

// Fault case E01.
TEST(StopMatcher, GivesOutNoPartOfAStopString) {
  StopMatcher matcher({"own fox"}, false);
  std::string text;
  for (const char* piece : {"The quick br", "own fox", " jumps"}) text += matcher.push(piece);
  EXPECT_EQ(text, "The quick br");
  EXPECT_EQ(matcher.matched(), "own fox");
  EXPECT_EQ(joined(StopMatcher({"own fox"}, true), {"The quick br", "own f", "ox jumps"}), "The quick brown fox");
}

TEST(StopMatcher, HoldsBackOnlyWhatCouldBecomeAStopString) {
  StopMatcher matcher({"END", "\n\n"}, false);
  EXPECT_EQ(matcher.push("abcE"), "abc");
  EXPECT_EQ(matcher.push("N"), "");
  EXPECT_EQ(matcher.push("x\n"), "ENx");
  EXPECT_EQ(matcher.push("E"), "\n");
  EXPECT_EQ(matcher.finish(), "E");
  EXPECT_FALSE(matcher.matched());
}

TEST(StopMatcher, TheCutsOfTheTextChangeNothing) {
  const std::string text = "aabaabaaabcd";
  for (const auto& stops : {std::vector<std::string>{"aabaaa"}, {"abcd", "bc"}, {"bc", "abc"}, {"abd"}}) {
    const std::string whole = joined(StopMatcher(stops, false), {text});
    for (size_t a = 0; a <= text.size(); ++a) {
      for (size_t b = a; b <= text.size(); ++b) {
        EXPECT_EQ(joined(StopMatcher(stops, false), {text.substr(0, a), text.substr(a, b - a), text.substr(b)}), whole);
      }
    }
  }
  EXPECT_EQ(joined(StopMatcher({"abcd", "bc"}, false), {text}), "aabaabaaa");  // "bc" is complete first
  EXPECT_EQ(joined(StopMatcher({"bc", "abc"}, false), {text}), "aabaabaa");    // the longer of two that end together
}

RequestOutput token(int32_t id, std::optional<FinishReason> reason = {}) {
  RequestOutput output;
  output.token_ids = {id};
  output.finish_reason = reason;
  return output;
}

std::string text_of(const TextParams& params, const std::vector<RequestOutput>& outputs) {
  const Tokenizer tokenizer = test::load_tokenizer(test::qwen2_like_json());
  TextStream stream(&tokenizer, params);
  std::string text;
  for (const RequestOutput& output : outputs) text += stream.take(output).text;
  return text;
}

// Fault cases E03 and E05: no half characters, and valid UTF-8 where a text ends inside one.
TEST(TextStream, GivesOutWholeCharacters) {
  EXPECT_EQ(text_of({}, {token(0xE2), token(0x98), token(0x83), token('!', FinishReason::length)}), "\u2603!");
  EXPECT_EQ(text_of({}, {token(0xE2), token(0x98, FinishReason::length)}), "\uFFFD");
  EXPECT_EQ(text_of({}, {token(0xE2), token(300, FinishReason::stop)}), "\uFFFD");
  TextParams stop;
  stop.stop = {"\u2603"};
  EXPECT_EQ(text_of(stop, {token('a'), token(0xE2), token(0x98), token(0x83), token('b')}), "a");
}

// Fault cases E19 and F01.
TEST(TextStream, ATokenThatEndsTheTextIsNoPartOfIt) {
  EXPECT_EQ(text_of({}, {token(259), token(264, FinishReason::stop)}), "hello");
  TextParams params;
  params.include_stop_str_in_output = true;
  EXPECT_EQ(text_of(params, {token(259), token(264, FinishReason::stop)}), "hello world");
  params.skip_special_tokens = false;
  EXPECT_EQ(text_of(params, {token(259), token(300, FinishReason::stop)}), "hello<|end|>");
}

TEST(TextStream, LooksForStopStringsAfterMinTokens) {
  TextParams params;
  params.stop = {"ab"};
  params.sampling.min_tokens = 2;
  EXPECT_EQ(text_of(params, {token('a'), token('b'), token('c'), token('a'), token('b'), token('d')}), "abc");
}

std::vector<int32_t> prompt_of(int32_t tokens) {
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < tokens; ++i) prompt.push_back((i * 31 + 5) % testing::kFakeVocab);
  return prompt;
}

TextParams sampled(uint64_t seed, int64_t n, int64_t max_tokens = 24) {
  TextParams params;
  params.sampling.temperature = 0.9;
  params.sampling.seed = seed;
  params.sampling.max_tokens = max_tokens;
  params.n = n;
  return params;
}

struct Text {
  std::string text;
  std::vector<int32_t> ids;
  std::optional<std::string> stop_string;
  std::vector<FinishReason> ends;
};
using Texts = std::map<std::pair<RequestId, int64_t>, Text>;

/// What the requests that `add` adds to a generator come to.
Texts run(const std::function<void(TextGenerator&)>& add, int64_t* free_blocks = nullptr) {
  const auto state = ParallelState::single();
  FakeModel model;
  EngineOptions options;
  options.kv_blocks = 64;
  options.max_num_seqs = 5;
  LLMEngine engine(model, *state, options);
  const Tokenizer tokenizer = test::load_tokenizer(test::qwen2_like_json());
  TextGenerator generator(engine, &tokenizer);
  add(generator);
  Texts texts;
  for (int step = 0; generator.has_unfinished() && step < 1000; ++step) {
    for (const TextOutput& output : generator.step()) {
      Text& text = texts[{output.output.request, output.index}];
      text.text += output.text;
      text.ids.insert(text.ids.end(), output.output.token_ids.begin(), output.output.token_ids.end());
      if (output.output.finish_reason) text.ends.push_back(*output.output.finish_reason);
      if (output.stop_string) text.stop_string = output.stop_string;
    }
  }
  EXPECT_FALSE(engine.has_unfinished());
  if (free_blocks != nullptr) *free_blocks = engine.free_kv_blocks();
  return texts;
}

Text single(const TextParams& params) {
  return run([&](TextGenerator& generator) { generator.add(prompt_of(9), params); }).begin()->second;
}

// Fault case E17: every text has its own index and ends once.
TEST(TextGenerator, TextsOfOneRequestHaveStreamsOfTheirOwn) {
  const Texts texts = run([](TextGenerator& generator) { generator.add(prompt_of(9), sampled(42, 3)); });
  ASSERT_EQ(texts.size(), 3u);
  std::set<std::vector<int32_t>> different;
  int64_t index = 0;
  for (const auto& [key, text] : texts) {
    EXPECT_EQ(key.second, index);
    EXPECT_EQ(text.ends, (std::vector<FinishReason>{FinishReason::length}));
    EXPECT_EQ(text.ids, single(sampled(seed_of_text(42, index++), 1)).ids);
    different.insert(text.ids);
  }
  EXPECT_EQ(different.size(), 3u);
  EXPECT_EQ(seed_of_text(42, 0), 42u);
}

// Fault case E22: alone, beside another number of texts, beside an unseeded request.
TEST(TextGenerator, ASeededTextIsTheSameWhateverRunsBesideIt) {
  const Text alone = single(sampled(42, 1));
  const Texts texts = run([](TextGenerator& generator) {
    TextParams unseeded = sampled(0, 2);
    unseeded.sampling.seed.reset();
    generator.add(prompt_of(30), unseeded);
    generator.add(prompt_of(9), sampled(42, 4));
    generator.add(prompt_of(9), sampled(42, 1));
  });
  EXPECT_EQ(texts.at({3, 0}).text, alone.text);
  EXPECT_EQ(texts.at({7, 0}).text, alone.text);
  EXPECT_NE(texts.at({1, 0}).ids, texts.at({1, 1}).ids);
}

TEST(TextGenerator, AStopStringEndsItsTextAndFreesItsBlocks) {
  const std::string whole = single(sampled(42, 1)).text;
  TextParams params = sampled(42, 2);
  params.stop = {whole.substr(6, 3)};
  int64_t free_blocks = 0;
  const Texts texts = run([&](TextGenerator& generator) { generator.add(prompt_of(9), params); }, &free_blocks);
  const Text& text = texts.at({1, 0});
  EXPECT_EQ(text.text, whole.substr(0, whole.find(params.stop[0])));
  EXPECT_EQ(text.stop_string, params.stop[0]);
  EXPECT_EQ(text.ends, (std::vector<FinishReason>{FinishReason::stop}));
  EXPECT_LT(text.ids.size(), 24u);
  EXPECT_EQ(texts.at({1, 1}).ids.size(), 24u);
  EXPECT_EQ(free_blocks, 64);
}

TEST(TextGenerator, CancelEndsAllTexts) {
  int64_t free_blocks = 0;
  const Texts texts = run(
      [](TextGenerator& generator) {
        const RequestId id = generator.add(prompt_of(9), sampled(1, 3));
        EXPECT_EQ(generator.step().size(), 3u);
        EXPECT_TRUE(generator.cancel(id));
        EXPECT_FALSE(generator.cancel(id));
      },
      &free_blocks);
  EXPECT_TRUE(texts.empty());
  EXPECT_EQ(free_blocks, 64);
}

TEST(TextGenerator, AFullQueueTakesAllTextsOrNone) {
  const auto state = ParallelState::single();
  FakeModel model;
  EngineOptions options;
  options.max_num_seqs = 2;
  options.max_queue = 1;
  LLMEngine engine(model, *state, options);
  TextGenerator generator(engine, nullptr);
  EXPECT_THROW(generator.add({1}, sampled(1, 4)), QueueFull);
  EXPECT_FALSE(engine.has_unfinished());
  EXPECT_FALSE(generator.has_unfinished());
  generator.add({1}, sampled(1, 3));
  EXPECT_TRUE(generator.has_unfinished());
}

TEST(TextGenerator, RefusesWhatCannotBe) {
  const auto state = ParallelState::single();
  FakeModel model;
  LLMEngine engine(model, *state);
  TextGenerator generator(engine, nullptr);
  const auto message = [&](auto change) {
    TextParams params;
    change(params);
    return error_of<ArgumentError>([&] { generator.add({1}, params); });
  };
  EXPECT_THAT(message([](auto& p) { p.n = 0; }), HasAll("n is 0", "128"));
  EXPECT_THAT(message([](auto& p) { p.stop = {"a", ""}; }), HasAll("stop", "empty"));
  EXPECT_THAT(message([](auto& p) { p.stop = {"a"}; }), HasAll("stop", "tokenizer"));
  EXPECT_THAT(message([](auto& p) { p.sampling.logit_bias = {{97, 1.0}}; }), HasAll("logit_bias", "97"));
  EXPECT_FALSE(engine.has_unfinished());
}

}  // namespace
}  // namespace headway
