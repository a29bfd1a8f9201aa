#include "cli/progress_bar.h"

#include <gtest/gtest.h>

namespace headway {
namespace {

TEST(ProgressLine, FillsWithTheShareThatIsDone) {
  EXPECT_EQ(progress_line("loading", 0, 2048, 40), "loading [>          ]   0 % of 2.0 KiB");
  EXPECT_EQ(progress_line("loading", 1024, 2048, 40), "loading [=====>     ]  50 % of 2.0 KiB");
  EXPECT_EQ(progress_line("loading", 2048, 2048, 40), "loading [===========] 100 % of 2.0 KiB");
  const auto requests = [](int64_t count) { return std::to_string(count) + " requests"; };
  EXPECT_EQ(progress_line("batch", 3, 4, 40, requests), "batch [=======>  ]  75 % of 4 requests");
}

TEST(ProgressLine, FitsTheTerminal) {
  for (int width : {10, 30, 33, 80, 100}) {
    const std::string line = progress_line("loading", 700, 2048, width);
    EXPECT_TRUE(static_cast<int>(line.size()) <= width || line == "loading  34 % of 2.0 KiB") << line;
  }
}

TEST(ReadableBytes, TakesTheLargestUnitAboveOne) {
  EXPECT_EQ(readable_bytes(0), "0 B");
  EXPECT_EQ(readable_bytes(1023), "1023 B");
  EXPECT_EQ(readable_bytes(1536), "1.5 KiB");
  EXPECT_EQ(readable_bytes(int64_t{3} << 30), "3.0 GiB");
}

}  // namespace
}  // namespace headway
