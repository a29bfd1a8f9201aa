#include <gtest/gtest.h>

#include <random>

#include "unit/tokenizer/small_tokenizer.h"

namespace headway::test {
namespace {

TEST(Encode, MergesLowestRankFirst) {
  const Tokenizer tokenizer = load_tokenizer(qwen2_like_json());
  EXPECT_EQ(tokenizer.encode("hello world"), (Ids{259, 264}));
  EXPECT_EQ(tokenizer.encode("world"), (Ids{'w', 261, 263}));  // no merge makes "wor" without the space
  EXPECT_EQ(tokenizer.encode("ababab"), (Ids{272, 271}));      // the leftmost of equal ranks goes first
  EXPECT_EQ(tokenizer.encode(""), Ids{});
}

// Fault case F05.
TEST(Encode, CutsPunctuationRunsAndDigitsAsQwen2Does) {
  const Tokenizer tokenizer = load_tokenizer(qwen2_like_json());
  EXPECT_EQ(tokenizer.encode("->"), (Ids{265}));
  EXPECT_EQ(tokenizer.encode("(x):\n"), (Ids{267, 268}));
  EXPECT_EQ(tokenizer.encode("123456"), (Ids{'1', '2', '3', '4', '5', '6'}));
}

TEST(Encode, CutsAsSmolLM2Does) {
  const Tokenizer tokenizer = load_tokenizer(smollm2_like_json());
  EXPECT_EQ(tokenizer.encode("123"), (Ids{'1', '2', '3'}));
  EXPECT_EQ(tokenizer.encode("hello world"), (Ids{259, 264}));
  // Unlike Qwen2, a line break ends a run of punctuation, and a bracket stays apart from the letters.
  EXPECT_EQ(tokenizer.encode("(x):\n"), (Ids{'(', 'x', 266, '\n'}));
}

TEST(Encode, DigitsMayStayTogether) {
  Json json = smollm2_like_json();
  json["pre_tokenizer"]["pretokenizers"][0]["individual_digits"] = false;
  EXPECT_EQ(load_tokenizer(json).encode("123"), (Ids{269, '3'}));
}

// Fault case F07.
TEST(Encode, ComposesCharactersWhereTheFileSaysNfc) {
  const Tokenizer composing = load_tokenizer(qwen2_like_json());
  EXPECT_EQ(composing.encode("e\u0301"), (Ids{270}));
  EXPECT_EQ(composing.encode("\u00E9"), (Ids{270}));
  EXPECT_EQ(composing.encode("cafe\u0301s"), (Ids{'c', 'a', 'f', 270, 's'}));
  EXPECT_EQ(composing.encode("caf\u00E9s"), (Ids{'c', 'a', 'f', 270, 's'}));
  const Tokenizer plain = load_tokenizer(smollm2_like_json());
  EXPECT_EQ(plain.encode("e\u0301"), (Ids{'e', 0xCC, 0x81}));
}

// Fault case F04.
TEST(Encode, MergesMayBePairs) {
  Json pairs = qwen2_like_json();
  for (Json& merge : pairs["model"]["merges"]) {
    const std::string text = merge;
    const size_t space = text.find(' ');
    merge = {text.substr(0, space), text.substr(space + 1)};
  }
  const Tokenizer of_strings = load_tokenizer(qwen2_like_json());
  const Tokenizer of_pairs = load_tokenizer(pairs);
  const std::vector<std::string> bits = {"hello", " world", "he",      "ll", "(x", "):\n",
                                         "12",    "\u00E9", "e\u0301", " ",  "ab"};
  std::mt19937 random(4);
  for (int line = 0; line < 1000; ++line) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += bits[random() % bits.size()];
    ASSERT_EQ(of_pairs.encode(text), of_strings.encode(text)) << text;
  }
  EXPECT_EQ(of_pairs.encode("hello world"), (Ids{259, 264}));
}

/// Byte-pair encoding as its definition says, one merge after the other over the whole word.
Ids merge_plainly(const Json& model, const std::string& word) {
  std::vector<std::string> symbols;
  for (const char c : word) symbols.push_back(byte_level_characters()[static_cast<unsigned char>(c)]);
  while (true) {
    size_t best_rank = model["merges"].size(), best = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (size_t rank = 0; rank < best_rank; ++rank) {
        if (model["merges"][rank] == symbols[i] + " " + symbols[i + 1]) best_rank = rank, best = i;
      }
    }
    if (best_rank == model["merges"].size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const std::string& symbol : symbols) ids.push_back(model["vocab"][symbol]);
  return ids;
}

TEST(Encode, LongAndShortWordsMergeAlike) {
  const Json json = qwen2_like_json();
  const Tokenizer tokenizer = load_tokenizer(json);
  std::mt19937 random(7);
  for (const size_t length : {1u, 2u, 7u, 47u, 48u, 49u, 50u, 97u, 400u}) {
    std::string word;
    while (word.size() < length) word += "abhelo"[random() % 6];
    EXPECT_EQ(tokenizer.encode(word), merge_plainly(json["model"], word)) << word;
  }
}

TEST(Encode, IgnoresMergesForWordsThatAreTokens) {
  Json json = qwen2_like_json();
  json["model"]["vocab"]["held"] = 280;  // no merge makes it
  EXPECT_EQ(load_tokenizer(json).encode("held"), (Ids{256, 263}));
  json["model"]["ignore_merges"] = true;
  EXPECT_EQ(load_tokenizer(json).encode("held"), (Ids{280}));
  EXPECT_EQ(load_tokenizer(json).encode("hello hold"), (Ids{259, ' ', 'h', 'o', 263}));
}

TEST(Encode, LeavesOutBytesWithoutAToken) {
  Json json = smollm2_like_json();
  json["model"]["vocab"].erase("q");
  EXPECT_EQ(load_tokenizer(json).encode("hqe"), (Ids{256}));
}

TEST(Encode, ReadsInvalidUtf8AsReplacementCharacters) {
  const Tokenizer tokenizer = load_tokenizer(qwen2_like_json());
  EXPECT_EQ(tokenizer.encode("a\xFF"), (Ids{'a', 0xEF, 0xBF, 0xBD}));
  EXPECT_EQ(tokenizer.encode("\xF0\x9F\x98"), (Ids{0xEF, 0xBF, 0xBD}));
  EXPECT_EQ(tokenizer.encode("\xC3("), (Ids{0xEF, 0xBF, 0xBD, '('}));
}

}  // namespace
}  // namespace headway::test
