#include <gtest/gtest.h>

#include <string>

#include "base/json.h"
#include "headway/base/dtype.h"
#include "headway/base/error.h"

namespace headway {
namespace {

std::string parse_error(const std::string& text) {
  try {
    parse_json(text, "f.json");
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ParseJson, RefusesDuplicateKeysAtAnyDepth) {
  EXPECT_EQ(parse_error(R"({"a": 1, "b": {"c": 1, "c": 2}})"), "f.json: duplicate key \"c\"");
  EXPECT_EQ(parse_error(R"({"a": {"c": 1}, "b": {"c": 2}})"), "no error");
}

TEST(ParseJson, RefusesDeepNestingWithoutRecursion) {
  EXPECT_EQ(parse_error(std::string(63, '[') + std::string(63, ']')), "no error");
  EXPECT_EQ(parse_error(std::string(100000, '[')), "f.json: JSON is nested deeper than 64 levels");
}

TEST(ParseJson, BuildsEveryKindOfValue) {
  const std::string text = R"({"a":[null,true,-1,18446744073709551615,0.5,"x",[],{}],"b":{"c":[{"d":2}]}})";
  EXPECT_EQ(parse_json(text, "f.json").dump(), text);
  EXPECT_EQ(parse_json("7", "f.json"), 7);
}

// The parser's own callback would take time by the square of the list's length: hours here.
TEST(ParseJson, ReadsAListOfAMillionObjects) {
  std::string text = "[";
  for (int i = 0; i < 1000000; ++i) text += "{},";
  EXPECT_EQ(parse_json(text + "7]", "f.json").size(), 1000001);
}

TEST(ParseJson, RefusesWhatIsNotJson) {
  EXPECT_EQ(parse_error(std::string("{}\0junk", 7)), "f.json: not valid JSON: it has a NUL byte");
  EXPECT_TRUE(parse_error("{:").starts_with("f.json: not valid JSON: "));
  EXPECT_TRUE(parse_error("").starts_with("f.json: not valid JSON: "));
}

TEST(DumpJson, ReplacesInvalidUtf8) {
  EXPECT_EQ(dump_json(Json("\xC3\x28")), "\"\xEF\xBF\xBD(\"");
}

TEST(DType, NamesGoBothWays) {
  for (const char* name : {"BOOL", "U8", "I64", "F16", "BF16", "F32", "F64", "F8_E4M3", "F8_E5M2"}) {
    ASSERT_TRUE(dtype_from_safetensors(name)) << name;
    EXPECT_EQ(name_of(*dtype_from_safetensors(name)), name);
  }
  EXPECT_FALSE(dtype_from_safetensors("F4"));
  EXPECT_EQ(size_of(DType::BF16), 2);
  EXPECT_EQ(size_of(DType::F8_E4M3), 1);
  EXPECT_EQ(dtype_from_config("torch.bfloat16"), DType::BF16);
  EXPECT_EQ(dtype_from_config("half"), DType::F16);
  EXPECT_FALSE(dtype_from_config("int8"));
}

}  // namespace
}  // namespace headway
