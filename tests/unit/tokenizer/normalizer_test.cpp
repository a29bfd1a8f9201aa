#include "tokenizer/normalizer.h"

#include <gtest/gtest.h>

namespace headway::test {
namespace {

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(Normalizer, ComposesAndOrdersMarks) {
  EXPECT_EQ(to_nfc("plain"), "plain");
  EXPECT_EQ(to_nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(to_nfc("q\u0301\u0323"), "q\u0323\u0301");      // the mark below goes first
  EXPECT_EQ(to_nfc("s\u0323\u0307"), "\u1E69");             // two marks compose in turn
  EXPECT_EQ(to_nfc("\u1100\u1161\u11A8"), "\uAC01");        // Hangul
  EXPECT_EQ(to_nfc("\u212B\u2126"), "\u00C5\u03A9");        // singletons
  EXPECT_EQ(to_nfc("\u0958"), "\u0915\u093C");              // excluded from composition
  EXPECT_EQ(to_nfc("\U0001D15E"), "\U0001D157\U0001D165");  // above U+FFFF
}

TEST(Normalizer, MarksOfLaterUnicodeVersionsStopComposition) {
  EXPECT_EQ(to_nfc("a\u1DF6\u0301"), "a\u1DF6\u0301");                     // a mark since Unicode 10
  EXPECT_EQ(to_nfc("a\u0301\U0001E4EC\u0323"), "\u00E1\U0001E4EC\u0323");  // since Unicode 15
  EXPECT_EQ(to_nfc("\U00011935\U00011930"), "\U00011935\U00011930");       // composes since Unicode 13
  EXPECT_EQ(to_nfc("\uAC00\u11A7e\u0301"), "\uAC00\u11A7\u00E9");          // no consonant, and not lost
}

TEST(Normalizer, LongRunsOfMarksTakeLinearTime) {
  constexpr int kMarks = 300000;  // in quadratic time these take minutes
  EXPECT_EQ(to_nfc("a" + repeated("\u0301\u0323", kMarks)),
            "\u1EA1" + repeated("\u0323", kMarks - 1) + repeated("\u0301", kMarks));
}

}  // namespace
}  // namespace headway::test
