#include "headway/weights/safetensors_file.h"

#include <gmock/gmock.h>

#include "headway/base/error.h"
#include "support/expect_error.h"
#include "support/safetensors_writer.h"
#include "support/temporary_folder.h"

namespace headway {
namespace {

using test::HasAll;
using test::length_prefix;
using test::safetensors_of;

SafetensorsHeader parse(std::string_view file) {
  return SafetensorsHeader::parse(std::as_bytes(std::span(file)), static_cast<int64_t>(file.size()), "w.safetensors");
}

std::string refusal(std::string_view file) {
  return test::error_of<CheckpointError>([&] { parse(file); });
}

std::string refusal(std::string_view header, std::string_view data) {
  return refusal(safetensors_of(header, data));
}

std::string read_as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(SafetensorsFile, GivesTheBytesOfEachTensor) {
  const test::TemporaryFolder folder;
  const auto path = folder.write(
      "w.safetensors",
      safetensors_of({{"b", "F16", {3}, "abcdef"}, {"a", "F32", {1, 2}, "ABCDEFGH"}, {"scalar", "U8", {}, "x"}}));
  const SafetensorsFile file(path);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(file.tensors().at("a").shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(file.tensors().at("a").dtype, DType::F32);
  EXPECT_EQ(read_as_text(file.data(file.tensors().at("a"))), "ABCDEFGH");
  EXPECT_EQ(read_as_text(file.data(file.tensors().at("b"))), "abcdef");
  EXPECT_EQ(read_as_text(file.data(file.tensors().at("scalar"))), "x");
}

TEST(SafetensorsFile, BytesCanBeReadAgainAfterTheyWereReleased) {
  const test::TemporaryFolder folder;
  const std::string first(10000, 'a'), second(10000, 'b');
  const SafetensorsFile file(folder.write(
      "w.safetensors", safetensors_of({{"first", "U8", {10000}, first}, {"second", "U8", {10000}, second}})));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(read_as_text(file.data(file.tensors().at("first"))), first);
    file.release(file.data(file.tensors().at("first")));
    EXPECT_EQ(read_as_text(file.data(file.tensors().at("second"))), second);
    file.release(file.data(file.tensors().at("second")).subspan(5000, 1000));
  }
}

TEST(SafetensorsFile, FilesThatCannotBeMappedAreNamed) {
  const test::TemporaryFolder folder;
  const auto refusal_of = [&](const std::filesystem::path& path) {
    return test::error_of<CheckpointError>([&] { SafetensorsFile file(path); });
  };
  EXPECT_THAT(refusal_of(folder / "absent.safetensors"), HasAll("absent.safetensors", "No such file"));
  EXPECT_THAT(refusal_of(folder.path()), HasAll(folder.path().string(), "not a regular file"));
  EXPECT_THAT(refusal_of(folder.write("empty.safetensors", "")), HasAll("empty.safetensors", "empty"));
}

TEST(SafetensorsHeader, AHeaderWithoutTensorsIsLegal) {
  EXPECT_TRUE(parse(safetensors_of("{}", "")).tensors.empty());
  EXPECT_TRUE(parse(safetensors_of(R"({"__metadata__":{"a":"b"}}   )", "")).tensors.empty());
}

// Fault case B13: cut by one byte, by a page, by half.
TEST(SafetensorsHeader, ShortAndLongFilesNameBothSizes) {
  const std::string whole =
      safetensors_of({{"a", "F32", {1000, 3}, std::string(12000, 'a')}, {"b", "U8", {17}, std::string(17, 'b')}});
  EXPECT_NO_THROW(parse(whole));
  for (const size_t cut : {size_t{1}, size_t{4096}, whole.size() / 2}) {
    EXPECT_THAT(refusal(whole.substr(0, whole.size() - cut)),
                HasAll("w.safetensors", std::to_string(whole.size()) + " bytes are expected",
                       "the file has " + std::to_string(whole.size() - cut)));
  }
  EXPECT_THAT(refusal(whole + "z"), HasAll(std::to_string(whole.size()) + " bytes are expected",
                                           "the file has " + std::to_string(whole.size() + 1)));
}

// Fault case B14.
TEST(SafetensorsHeader, AGitLfsPointerIsNamedAsSuch) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\n"
      "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 988097824\n";
  EXPECT_THAT(refusal(pointer), HasAll("w.safetensors", "not a safetensors file", "LFS pointer"));
  // The same first bytes without the rest of the pointer: the length is refused before anything is allocated.
  EXPECT_THAT(refusal("version 1"), HasAll("2336927755350992246", "the file has 9"));
}

TEST(SafetensorsHeader, TheHeaderLengthIsCheckedFirst) {
  EXPECT_THAT(refusal(""), HasAll("0 bytes are too short"));
  EXPECT_THAT(refusal("1234567"), HasAll("7 bytes are too short"));
  EXPECT_THAT(refusal(length_prefix(0)), HasAll("does not begin with {"));
  EXPECT_THAT(refusal(length_prefix(3) + "{}"), HasAll("a header of 3 bytes", "the file has 10"));
  EXPECT_THAT(refusal(length_prefix(UINT64_MAX) + "{}"), HasAll("18446744073709551615"));
  const std::string prefix = length_prefix(100000001) + "{}";
  EXPECT_THAT(test::error_of<CheckpointError>([&] {
                SafetensorsHeader::parse(std::as_bytes(std::span(prefix)), int64_t{1} << 40, "w.safetensors");
              }),
              HasAll("100000001", "100000000"));
}

TEST(SafetensorsHeader, OnlyTheJsonOfTheFormatIsAccepted) {
  EXPECT_THAT(refusal("[]", ""), HasAll("does not begin with {"));
  EXPECT_THAT(refusal(" {}", ""), HasAll("does not begin with {"));
  EXPECT_THAT(refusal("{", ""), HasAll("not valid JSON"));
  EXPECT_THAT(refusal("{} x", ""), HasAll("not valid JSON"));
  EXPECT_THAT(refusal(std::string("{}\0", 3), ""), HasAll("not valid JSON"));
  EXPECT_THAT(refusal("{\"a\xff\":{}}", ""), HasAll("not valid JSON"));
  EXPECT_THAT(refusal(R"({"a":1})", ""), HasAll("1 is not expected", "\"a\""));
  EXPECT_THAT(refusal(R"({"a":[]})", ""), HasAll("an array is not expected"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":1}})", ""), HasAll("1 is not expected"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":{}}})", ""), HasAll("an object is not expected"));
  EXPECT_THAT(refusal(R"({"__metadata__":[]})", ""), HasAll("an array is not expected"));
}

TEST(SafetensorsHeader, DeepNestingIsRefusedAtOnce) {
  std::string deep = "{\"a\":";
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
  EXPECT_THAT(refusal(deep, ""), HasAll("\"a\""));
  EXPECT_THAT(refusal("{\"a\":{\"shape\":" + std::string(100000, '['), ""), HasAll("an array is not expected"));
}

TEST(SafetensorsHeader, EntriesOfATensorAreCheckedOneByOne) {
  const auto entry = [](std::string_view fields) { return refusal("{\"t\":{" + std::string(fields) + "}}", "abcd"); };
  EXPECT_THAT(entry(R"("shape":[4],"data_offsets":[0,4])"), HasAll("tensor \"t\": no dtype"));
  EXPECT_THAT(entry(R"("dtype":"U8","data_offsets":[0,4])"), HasAll("tensor \"t\": no shape"));
  EXPECT_THAT(entry(R"("dtype":"U8","shape":[4])"), HasAll("tensor \"t\": no data_offsets"));
  EXPECT_THAT(entry(R"("dtype":"U8","shape":[4],"data_offsets":[0])"), HasAll("no data_offsets of two"));
  EXPECT_THAT(entry(R"("dtype":"U8","shape":[4],"data_offsets":[0,4,4])"), HasAll("more than 2 numbers"));
  EXPECT_THAT(entry(R"("dtype":"F7","shape":[4],"data_offsets":[0,4])"), HasAll("unknown dtype \"F7\""));
  EXPECT_THAT(entry(R"("dtype":4,"shape":[4],"data_offsets":[0,4])"), HasAll("4 is not expected", "\"t\".dtype"));
  EXPECT_THAT(entry(R"("dtype":"U8","shape":"4","data_offsets":[0,4])"), HasAll("\"4\" is not expected"));
  EXPECT_THAT(entry(R"("dtype":"U8","shape":[-4],"data_offsets":[0,4])"), HasAll("-4 is not expected", "\"t\".shape"));
  EXPECT_THAT(entry(R"("dtype":"U8","shape":[4.0],"data_offsets":[0,4])"), HasAll("4.0 is not expected"));
  EXPECT_THAT(entry(R"("dtype":"U8","shape":[true],"data_offsets":[0,4])"), HasAll("not expected", "\"t\".shape"));
  EXPECT_THAT(entry(R"("dtype":"U8","shape":[null],"data_offsets":[0,4])"), HasAll("null is not expected"));
  EXPECT_THAT(entry(R"("dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,4])"),
              HasAll("9223372036854775808 is not expected"));
  EXPECT_THAT(entry(R"("dtype":"U8","shape":[4],"data_offsets":[0,4],"extra":1)"), HasAll("unknown key \"extra\""));
  EXPECT_THAT(entry(R"("dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4])"), HasAll("\"dtype\" occurs twice"));
  std::string many = "1";
  for (int i = 0; i < 64; ++i) many += ",1";
  EXPECT_THAT(entry("\"dtype\":\"U8\",\"shape\":[" + many + "]"), HasAll("more than 64 numbers"));
}

TEST(SafetensorsHeader, NamesMayNotRepeat) {
  EXPECT_THAT(refusal(R"({"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                      R"("t":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                      "abcd"),
              HasAll("w.safetensors", "\"t\" occurs twice"));
  EXPECT_THAT(refusal(R"({"__metadata__":{},"__metadata__":{}})", ""), HasAll("\"__metadata__\" occurs twice"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":"1","a":"2"}})", ""), HasAll("\"a\" occurs twice"));
}

// Fault case B16.
TEST(SafetensorsHeader, OffsetsMustHoldShapeTimesDtype) {
  EXPECT_THAT(refusal(R"({"t":{"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]}})", "abcd"),
              HasAll("tensor \"t\"", "4000000 bytes", "hold 4"));
  EXPECT_THAT(refusal(R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", "abcd"),
              HasAll("tensor \"t\"", "[4, 0]"));
  EXPECT_THAT(refusal(R"({"t":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", ""),
              HasAll("tensor \"t\"", "[4294967296, 4294967296] is too large"));
  EXPECT_THAT(refusal(R"({"t":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", ""),
              HasAll("tensor \"t\"", "too large"));
  EXPECT_THAT(
      refusal(R"({"t":{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]}})", ""),
      HasAll("9223372036854775904 bytes are expected"));
}

// Fault case B17.
TEST(SafetensorsHeader, OverlapsAndHolesNameTheTensors) {
  const auto two = [](const std::string& k, const std::string& v) {
    return R"({"k_proj":{"dtype":"U8","shape":[4],"data_offsets":)" + k +
           R"(},"v_proj":{"dtype":"U8","shape":[4],"data_offsets":)" + v + "}}";
  };
  EXPECT_THAT(refusal(two("[0,4]", "[0,4]"), "abcd"), HasAll("\"k_proj\"", "\"v_proj\"", "overlap"));
  EXPECT_THAT(refusal(two("[0,4]", "[3,7]"), "abcdefg"), HasAll("\"k_proj\"", "\"v_proj\"", "overlap"));
  EXPECT_THAT(refusal(two("[0,4]", "[5,9]"), "abcdefghi"), HasAll("\"k_proj\"", "\"v_proj\"", "hole"));
  EXPECT_THAT(refusal(two("[1,5]", "[5,9]"), "abcdefghi"), HasAll("\"k_proj\"", "the start of the data", "hole"));
  const SafetensorsHeader out_of_order = parse(safetensors_of(two("[4,8]", "[0,4]"), "abcdefgh"));
  EXPECT_EQ(out_of_order.tensors.at("k_proj").begin, 4);
  EXPECT_EQ(out_of_order.tensors.at("v_proj").begin, 0);
}

// Fault case B20.
TEST(SafetensorsHeader, TensorsWithoutElementsAreLegal) {
  const auto with_shape = [](const std::string& shape) {
    return R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"t":{"dtype":"F32","shape":)" + shape +
           R"(,"data_offsets":[2,2]},"z":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})";
  };
  EXPECT_EQ(parse(safetensors_of(with_shape("[0]"), "abc")).tensors.at("t").bytes(), 0);
  EXPECT_NO_THROW(parse(safetensors_of(with_shape("[4611686018427387904,0,8]"), "abc")));
  EXPECT_THAT(refusal(with_shape("[1]"), "abc"), HasAll("tensor \"t\"", "4 bytes", "hold 0"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                      R"("t":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
                      "ab"),
              HasAll("overlap"));
}

}  // namespace
}  // namespace headway
