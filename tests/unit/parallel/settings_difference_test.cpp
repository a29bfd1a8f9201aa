#include "parallel/launch/settings_difference.h"

#include <gtest/gtest.h>

namespace headway {
namespace {

TEST(SettingsDifference, LinesAreNamesAndValues) {
  EXPECT_EQ(settings_of_text("a=1\nb=x=y\nbare"), (Settings{{"a", "1"}, {"b", "x=y"}, {"line 3", "bare"}}));
  EXPECT_EQ(settings_of_text(""), Settings{});
}

TEST(SettingsDifference, EncodingKeepsAnyBytes) {
  const Settings settings{{"name\xff", std::string("a\0b", 3)}, {"", ""}};
  EXPECT_EQ(decode_settings(encode_settings(settings)), settings);
}

TEST(SettingsDifference, EqualSettingsHaveNone) {
  EXPECT_EQ(describe_differences({{{"a", "1"}}, {{"a", "1"}}}), "");
  EXPECT_EQ(describe_differences({{{"a", "1"}}}), "");
}

TEST(SettingsDifference, RanksAndValuesAreNamed) {
  EXPECT_EQ(describe_differences({{{"tp", "4"}, {"dtype", "fp32"}},
                                  {{"tp", "2"}, {"dtype", "fp32"}},
                                  {{"tp", "4"}, {"dtype", "fp32"}, {"extra", "1"}}}),
            "tp is 4 on ranks 0, 2 and 2 on rank 1; extra is (not set) on ranks 0, 1 and 1 on rank 2");
}

}  // namespace
}  // namespace headway
