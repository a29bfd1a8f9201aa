#include <gtest/gtest.h>

#include "unit/tokenizer/small_tokenizer.h"

namespace headway::test {
namespace {

/// Qwen2-like, with `flags` set on the plain added token <call>.
Tokenizer with_flags(const Json& flags) {
  Json json = qwen2_like_json();
  json["added_tokens"][2].update(flags);
  return load_tokenizer(json);
}

TEST(AddedTokens, AreFoundBeforeTextIsNormalizedAndCut) {
  const Tokenizer tokenizer = load_tokenizer(qwen2_like_json());
  EXPECT_EQ(tokenizer.encode("he<|end|>llo"), (Ids{256, 300, 257, 'o'}));
  EXPECT_EQ(tokenizer.encode("<|end|><|user|><call>"), (Ids{300, 301, 302}));
  // The accent would compose with the bracket if the text were normalized first.
  EXPECT_EQ(tokenizer.encode("<|end|>\u0338"), (Ids{300, 0xCC, 0xB8}));
}

TEST(AddedTokens, TheLongestAtTheLeftmostPlaceWins) {
  Json json = qwen2_like_json();
  json["added_tokens"].push_back({{"id", 310}, {"content", "<|end|><"}, {"special", false}, {"normalized", false}});
  EXPECT_EQ(load_tokenizer(json).encode("<|end|><|end|>"), (Ids{310, '|', 'e', 'n', 'd', '|', '>'}));
}

TEST(AddedTokens, SpecialOnesArePlainTextOnRequest) {
  const Tokenizer tokenizer = load_tokenizer(qwen2_like_json());
  EXPECT_EQ(tokenizer.encode("<|end|>", false), (Ids{'<', '|', 'e', 'n', 'd', '|', '>'}));
  EXPECT_EQ(tokenizer.encode("<call>", false), (Ids{302}));
}

TEST(AddedTokens, StripFlagsTakeTheSpaceAround) {
  EXPECT_EQ(with_flags(Json::object()).encode("a \n<call>\t\u3000b").size(), 9u);
  EXPECT_EQ(with_flags({{"lstrip", true}}).encode("a \n<call> b"), (Ids{'a', 302, ' ', 'b'}));
  EXPECT_EQ(with_flags({{"rstrip", true}}).encode("a <call>\t\u3000b"), (Ids{'a', ' ', 302, 'b'}));
  EXPECT_EQ(with_flags({{"lstrip", true}, {"rstrip", true}}).encode(" <call> <call> "), (Ids{302, 302}));
}

TEST(AddedTokens, SingleWordsTouchNoWordCharacter) {
  Json json = qwen2_like_json();
  json["added_tokens"][2].update({{"content", "hel"}, {"single_word", true}});
  const Tokenizer tokenizer = load_tokenizer(json);
  EXPECT_EQ(tokenizer.encode("hel"), (Ids{302}));
  EXPECT_EQ(tokenizer.encode("(hel)"), (Ids{'(', 302, ')'}));
  EXPECT_EQ(tokenizer.encode("hello"), (Ids{259}));
  EXPECT_EQ(tokenizer.encode("_hel"), (Ids{'_', 256, 'l'}));
  EXPECT_EQ(tokenizer.encode("\u00E9hel"), (Ids{270, 256, 'l'}));
}

TEST(AddedTokens, NormalizedOnesAreFoundInNormalizedText) {
  Json json = qwen2_like_json();
  json["added_tokens"][2].update({{"content", "<e\u0301>"}, {"normalized", true}});
  const Tokenizer tokenizer = load_tokenizer(json);
  EXPECT_EQ(tokenizer.encode("a<\u00E9>b"), (Ids{'a', 302, 'b'}));
  EXPECT_EQ(tokenizer.encode("a<e\u0301>b"), (Ids{'a', 302, 'b'}));
}

TEST(EncodeParts, SpecialTokensCountInTrustedPartsOnly) {
  const Tokenizer tokenizer = load_tokenizer(qwen2_like_json());
  const Ids plain_end = {'<', '|', 'e', 'n', 'd', '|', '>'};
  Ids expected = {301};
  expected.insert(expected.end(), plain_end.begin(), plain_end.end());
  expected.push_back(300);
  EXPECT_EQ(tokenizer.encode_parts({{"<|user|>", true}, {"<|end|>", false}, {"<|end|>", true}}), expected);
}

TEST(EncodeParts, NoSpecialTokenReachesAcrossABorder) {
  const Tokenizer tokenizer = load_tokenizer(qwen2_like_json());
  const Ids plain_end = {'<', '|', 'e', 'n', 'd', '|', '>'};
  EXPECT_EQ(tokenizer.encode_parts({{"<|en", true}, {"d|>", false}}), plain_end);
  EXPECT_EQ(tokenizer.encode_parts({{"<|en", false}, {"d|>", true}}), plain_end);
  EXPECT_EQ(tokenizer.encode_parts({{"<|en", true}, {"d|>", true}}), (Ids{300}));
}

TEST(EncodeParts, UntrustedTextCannotSwallowASpecialToken) {
  Json json = qwen2_like_json();
  json["added_tokens"].push_back({{"id", 310}, {"content", "a<|end|>"}, {"special", false}, {"normalized", false}});
  json["added_tokens"].push_back({{"id", 311}, {"content", "<|end|>b"}, {"special", true}, {"normalized", false}});
  const Tokenizer tokenizer = load_tokenizer(json);
  EXPECT_EQ(tokenizer.encode_parts({{"a", false}, {"<|end|>", true}, {"b", false}}), (Ids{'a', 300, 'b'}));
}

TEST(EncodeParts, WordsRunOnFromPartToPart) {
  const Tokenizer tokenizer = load_tokenizer(qwen2_like_json());
  EXPECT_EQ(tokenizer.encode_parts({{"hel", true}, {"lo wor", false}, {"ld", true}}), (Ids{259, 264}));
  EXPECT_EQ(tokenizer.encode_parts({{"e", true}, {"\u0301", false}}), (Ids{270}));
  EXPECT_EQ(tokenizer.encode_parts({{"\xC3", false}, {"\xA9", false}}), (Ids{270}));
  EXPECT_EQ(tokenizer.encode_parts({}), Ids{});
}

TEST(EncodeParts, NormalizedSpecialTokensKeepToTrustedTextToo) {
  Json json = smollm2_like_json();  // without a normalizer
  json["added_tokens"][0]["normalized"] = true;
  const Tokenizer tokenizer = load_tokenizer(json);
  EXPECT_EQ(tokenizer.encode("<call><|end|>"), (Ids{302, 300}));
  EXPECT_EQ(tokenizer.encode_parts({{"<call>", true}, {"<|end|>", false}, {"<|end|>", true}}),
            (Ids{302, '<', '|', 'e', 'n', 'd', '|', '>', 300}));
}

}  // namespace
}  // namespace headway::test
