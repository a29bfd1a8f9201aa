#include <gtest/gtest.h>

#include <random>

#include "tokenizer/utf8.h"
#include "unit/tokenizer/small_tokenizer.h"

namespace headway::test {
namespace {

constexpr const char* kReplacement = "\uFFFD";

std::vector<std::string> stream(const Tokenizer& tokenizer, const Ids& ids) {
  IncrementalDecoder decoder(tokenizer);
  std::vector<std::string> pieces;
  for (const int32_t id : ids) pieces.push_back(decoder.push(id));
  pieces.push_back(decoder.finish());
  return pieces;
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  return text;
}

TEST(Decode, JoinsTheBytesOfTokens) {
  const Tokenizer tokenizer = load_tokenizer(qwen2_like_json());
  EXPECT_EQ(tokenizer.decode({259, 264, 268}), "hello world):\n");
  EXPECT_EQ(tokenizer.token_bytes(264), " world");
  EXPECT_EQ(tokenizer.token_bytes(0xC3), "\xC3");
  EXPECT_EQ(tokenizer.token_id("hello"), 259);
  EXPECT_EQ(tokenizer.token_id("<|end|>"), 300);
  EXPECT_EQ(tokenizer.token_id("nothing"), std::nullopt);
  EXPECT_EQ(tokenizer.vocab_size(), 303);
}

TEST(Decode, SkipsSpecialTokensOnRequest) {
  const Tokenizer tokenizer = load_tokenizer(qwen2_like_json());
  EXPECT_EQ(tokenizer.decode({259, 300, 302}), "hello<call>");
  EXPECT_EQ(tokenizer.decode({259, 300, 302}, false), "hello<|end|><call>");
  EXPECT_TRUE(tokenizer.is_special(300));
  EXPECT_FALSE(tokenizer.is_special(302));
  EXPECT_EQ(joined(stream(tokenizer, {259, 300, 302})), "hello<call>");
}

// Fault case F08.
TEST(Decode, IdsWithoutATokenAreEmpty) {
  const Tokenizer tokenizer = load_tokenizer(qwen2_like_json());
  EXPECT_EQ(tokenizer.decode({259, 290, 303, 151700, INT32_MAX, -1, INT32_MIN}), "hello");
  EXPECT_EQ(tokenizer.token_bytes(290), "");
  EXPECT_FALSE(tokenizer.is_special(-1));
}

// Fault case E03.
TEST(IncrementalDecoder, HoldsBackACharacterThatIsSplitOverTokens) {
  Json json = qwen2_like_json();
  Json& model = json["model"];
  const auto token = [&](std::string_view bytes, int id) {  // of two bytes, made by a merge
    const auto& characters = byte_level_characters();
    const std::string& left = characters[static_cast<unsigned char>(bytes[0])];
    const std::string& right = characters[static_cast<unsigned char>(bytes[1])];
    model["vocab"][left + right] = id;
    model["merges"].push_back({left, right});
  };
  token("\xF0\x9F", 280);  // an emoji as 2 + 2 bytes
  token("\x98\x80", 281);
  token("\xB0\x80", 282);  // the syllable U+AC00 as 1 + 2 bytes: EA, B0 80
  const Tokenizer tokenizer = load_tokenizer(json);
  EXPECT_EQ(stream(tokenizer, {259, 280, 281, 0xEA, 282}),
            (std::vector<std::string>{"hello", "", "\U0001F600", "", "\uAC00", ""}));
  EXPECT_EQ(tokenizer.decode({259, 280, 281, 0xEA, 282}), "hello\U0001F600\uAC00");
}

// Fault case E05.
TEST(IncrementalDecoder, BrokenCharactersAreTheSameInStreamAndWhole) {
  const Tokenizer tokenizer = load_tokenizer(qwen2_like_json());
  // Half an emoji, then a piece that begins with a space.
  EXPECT_EQ(stream(tokenizer, {0xF0, 0x9F, 264}),
            (std::vector<std::string>{"", "", std::string(kReplacement) + " world", ""}));
  // The stream ends inside a character.
  EXPECT_EQ(stream(tokenizer, {259, 0xF0, 0x9F}), (std::vector<std::string>{"hello", "", "", kReplacement}));
  EXPECT_EQ(tokenizer.decode({0xF0, 0x9F, 264}), std::string(kReplacement) + " world");
  EXPECT_EQ(tokenizer.decode({259, 0xF0, 0x9F}), std::string("hello") + kReplacement);
}

// Fault case E06, the part of the decoder.
TEST(IncrementalDecoder, NeverGivesInvalidUtf8) {
  const Tokenizer tokenizer = load_tokenizer(qwen2_like_json());
  EXPECT_EQ(stream(tokenizer, {0xC3, '('}), (std::vector<std::string>{"", std::string(kReplacement) + "(", ""}));
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    Ids ids;
    for (int i = 0; i < 20; ++i) ids.push_back(static_cast<int32_t>(random() % 310));
    const std::vector<std::string> pieces = stream(tokenizer, ids);
    ASSERT_EQ(joined(pieces), tokenizer.decode(ids));
    for (const std::string& piece : pieces) {
      for (size_t i = 0; i < piece.size();) {
        const Utf8Unit unit = read_utf8_unit(piece, i);
        ASSERT_EQ(unit.kind, Utf8Unit::Kind::character);
        i += unit.length;
      }
    }
  }
}

TEST(Utf8, BrokenSequencesAreOneUnitAsFarAsTheyCouldBeValid) {
  const auto valid = [](const char* bytes) { return to_valid_utf8(bytes); };
  const std::string r = kReplacement;
  EXPECT_EQ(valid("\xC0\x80"), r + r);                     // overlong: no byte could begin a character
  EXPECT_EQ(valid("\xE0\x9F\x80"), r + r + r);             // overlong
  EXPECT_EQ(valid("\xED\xA0\x80"), r + r + r);             // a surrogate
  EXPECT_EQ(valid("\xF4\x90\x80\x80"), r + r + r + r);     // above U+10FFFF
  EXPECT_EQ(valid("\xF0\x90\x80x\xE1\x80"), r + "x" + r);  // cut short, inside and at the end
  EXPECT_EQ(valid("\xF4\x8F\xBF\xBF\xED\x9F\xBF"), "\xF4\x8F\xBF\xBF\xED\x9F\xBF");
}

}  // namespace
}  // namespace headway::test
