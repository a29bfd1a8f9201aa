#include "cli/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headway/base/error.h"

namespace headway {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Quantity, ReadsBytes) {
  EXPECT_EQ(parse_bytes("4096", "--x"), 4096);
  EXPECT_EQ(parse_bytes("24GiB", "--x"), int64_t{24} << 30);
  EXPECT_EQ(parse_bytes("1.5G", "--x"), int64_t{3} << 29);
  EXPECT_EQ(parse_bytes("24 GB", "--x"), 24000000000);
  EXPECT_EQ(parse_bytes("3KiB", "--x"), 3072);
}

TEST(Quantity, ReadsRatesAndTimes) {
  EXPECT_DOUBLE_EQ(parse_bytes_per_second("14GB/s", "--x"), 14e9);
  EXPECT_DOUBLE_EQ(parse_bytes_per_second("3.35 TB/s", "--x"), 3.35e12);
  EXPECT_DOUBLE_EQ(parse_operations_per_second("1.2TFLOP/s", "--x"), 1.2e12);
  EXPECT_DOUBLE_EQ(parse_seconds("5us", "--x"), 5e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("0.25ms", "--x"), 2.5e-4);
}

TEST(Quantity, RefusesWhatIsNotAPositiveNumberWithAUnitAndSaysWhich) {
  for (const char* text : {"", "GiB", "-1GiB", "0", "nan", "inf", "24gigs", "24GiB/s", "1e30GiB"}) {
    EXPECT_THAT([&] { parse_bytes(text, "--rank-memory"); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("--rank-memory"), HasSubstr(text))));
  }
  EXPECT_THAT([] { parse_seconds("5", "--collective-latency"); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("\"5\""), HasSubstr("us"))));
}

}  // namespace
}  // namespace headway
