#include "headway/weights/checkpoint_index.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "headway/base/error.h"
#include "support/expect_error.h"
#include "support/safetensors_writer.h"
#include "support/temporary_folder.h"

namespace headway {
namespace {

using namespace std::string_literals;
using nlohmann::json;
using test::HasAll;
using test::safetensors_of;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kShard1 = "model-00001-of-00002.safetensors";
constexpr const char* kShard2 = "model-00002-of-00002.safetensors";

/// A file with one tensor of two bytes.
std::string one_tensor(const std::string& name, const std::string& bytes) {
  return safetensors_of({{name, "U8", {2}, bytes}});
}

void write_two_shards(const test::TemporaryFolder& folder) {
  folder.write(kShard1, one_tensor("a", "AA"));
  folder.write(kShard2, one_tensor("b", "BB"));
  folder.write(kIndex,
               json{{"metadata", {{"total_size", 4}}}, {"weight_map", {{"a", kShard1}, {"b", kShard2}}}}.dump());
}

void write_weight_map(const test::TemporaryFolder& folder, const json& weight_map) {
  folder.write(kIndex, json{{"weight_map", weight_map}}.dump());
}

std::string bytes_of(const CheckpointIndex& index, const std::string& name) {
  const auto location = index.tensors().find(name);
  if (location == index.tensors().end()) return "absent";
  const auto data = location->second.file->data(location->second.info);
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

std::string refusal(const test::TemporaryFolder& folder) {
  return test::error_of<CheckpointError>([&] { CheckpointIndex index(folder.path()); });
}

std::string log_of(const test::TemporaryFolder& folder) {
  ::testing::internal::CaptureStderr();
  const CheckpointIndex index(folder.path());
  return ::testing::internal::GetCapturedStderr();
}

TEST(CheckpointIndex, ReadsASingleFile) {
  const test::TemporaryFolder folder;
  folder.write("model.safetensors", safetensors_of({{"a", "U8", {2}, "AA"}, {"b", "U8", {2}, "BB"}}));
  const CheckpointIndex index(folder.path());
  EXPECT_EQ(index.folder(), folder.path());
  EXPECT_EQ(index.tensors().size(), 2u);
  EXPECT_EQ(bytes_of(index, "b"), "BB");
  EXPECT_EQ(bytes_of(index, "c"), "absent");
}

TEST(CheckpointIndex, ReadsShards) {
  const test::TemporaryFolder folder;
  write_two_shards(folder);
  const CheckpointIndex index(folder.path());
  EXPECT_EQ(bytes_of(index, "a"), "AA");
  EXPECT_EQ(bytes_of(index, "b"), "BB");
}

TEST(CheckpointIndex, ReadsAHubCacheOfLinks) {
  const test::TemporaryFolder cache;
  cache.write("blobs/1111", one_tensor("a", "AA"));
  cache.write("blobs/2222", json{{"weight_map", {{"a", kShard1}}}}.dump());
  std::filesystem::create_directories(cache / "snapshots/main");
  std::filesystem::create_symlink("../../blobs/1111", cache / "snapshots/main" / kShard1);
  std::filesystem::create_symlink("../../blobs/2222", cache / "snapshots/main" / kIndex);
  EXPECT_EQ(bytes_of(CheckpointIndex(cache / "snapshots/main"), "a"), "AA");
  std::filesystem::remove(cache / "blobs/1111");
  EXPECT_THAT(test::error_of<CheckpointError>([&] { CheckpointIndex index(cache / "snapshots/main"); }),
              HasAll(kShard1, "cannot be opened"));
}

// Fault case B12.
TEST(CheckpointIndex, AnAbsentShardIsNamed) {
  const test::TemporaryFolder folder;
  write_two_shards(folder);
  std::filesystem::remove(folder / kShard2);
  EXPECT_THAT(refusal(folder), HasAll(kIndex, "of 2 files", "1 are absent", kShard2));
}

// Fault case B24.
TEST(CheckpointIndex, AStaleIndexIsNamedWithTheFirstAbsentFile) {
  const test::TemporaryFolder folder;
  folder.write("model-00001-of-00015.safetensors", one_tensor("a", "AA"));
  json weight_map;
  for (int i = 1; i <= 30; ++i) {
    std::string name = "model-000" + std::string(i < 10 ? "0" : "") + std::to_string(i) + "-of-00030.safetensors";
    weight_map["t" + std::to_string(i)] = name;
  }
  write_weight_map(folder, weight_map);
  EXPECT_THAT(refusal(folder), HasAll(kIndex, "30 are absent: \"model-00001-of-00030.safetensors\"", ", ..."));
}

// Fault case B13: a file is checked though nothing is read from it yet.
TEST(CheckpointIndex, EveryFileIsCheckedAtOnce) {
  const test::TemporaryFolder folder;
  write_two_shards(folder);
  const std::string whole = one_tensor("b", "BB");
  folder.write(kShard2, whole.substr(0, whole.size() - 1));
  EXPECT_THAT(refusal(folder), HasAll(kShard2, std::to_string(whole.size()), std::to_string(whole.size() - 1)));
}

// Fault case B21.
TEST(CheckpointIndex, FilesThatTheIndexDoesNotNameAreIgnoredAndLogged) {
  const test::TemporaryFolder folder;
  write_two_shards(folder);
  folder.write("model.safetensors", one_tensor("a", "99"));
  folder.write("consolidated.safetensors", "not even a safetensors file");
  const std::string log = log_of(folder);
  EXPECT_THAT(log, HasAll("2 files ignored: consolidated.safetensors, model.safetensors"));
  EXPECT_EQ(bytes_of(CheckpointIndex(folder.path()), "a"), "AA");
}

// Fault case B23.
TEST(CheckpointIndex, PickledFilesAreNeverRead) {
  const test::TemporaryFolder folder;
  folder.write("pytorch_model.bin", "other values");
  folder.write("training_args.bin", "arguments");
  EXPECT_THAT(refusal(folder), HasAll("unsupported format", "pytorch_model.bin, training_args.bin", "safetensors"));
  folder.write("model.safetensors", one_tensor("a", "AA"));
  EXPECT_THAT(log_of(folder), HasAll("ignored: pytorch_model.bin, training_args.bin"));
}

TEST(CheckpointIndex, FoldersWithoutWeightsAreNamed) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(refusal(folder), HasAll(folder.path().string(), "neither model.safetensors nor", kIndex));
  folder.write(kShard1, one_tensor("a", "AA"));
  EXPECT_THAT(refusal(folder), HasAll("neither", kShard1));
  EXPECT_THAT(test::error_of<CheckpointError>([&] { CheckpointIndex index(folder / "absent"); }),
              HasAll((folder / "absent").string(), "no such folder"));
}

TEST(CheckpointIndex, FileNamesMayNotLeaveTheFolder) {
  const test::TemporaryFolder outside;
  const auto target = outside.write("model.safetensors", one_tensor("a", "AA"));
  const std::string sibling = "../" + outside.path().filename().string() + "/model.safetensors";
  const test::TemporaryFolder folder;
  for (const std::string& name : {sibling, target.string(), "sub/../" + sibling, "sub/../../x.safetensors"s}) {
    write_weight_map(folder, {{"a", name}});
    EXPECT_THAT(refusal(folder), HasAll(kIndex, name, "leaves the folder"));
  }
  folder.write("sub/part.safetensors", one_tensor("a", "AA"));
  write_weight_map(folder, {{"a", "sub/part.safetensors"}});
  EXPECT_EQ(bytes_of(CheckpointIndex(folder.path()), "a"), "AA");
}

TEST(CheckpointIndex, AMalformedIndexIsNamed) {
  const test::TemporaryFolder folder;
  for (const std::string text : {"[]", "{}", R"({"weight_map": []})", R"({"weight_map": {}})"}) {
    folder.write(kIndex, text);
    EXPECT_THAT(refusal(folder), HasAll(kIndex, "weight_map"));
  }
  write_weight_map(folder, {{"a", 1}});
  EXPECT_THAT(refusal(folder), HasAll(kIndex, "\"a\""));
  write_weight_map(folder, {{"a", "model.bin"}});
  EXPECT_THAT(refusal(folder), HasAll(kIndex, "\"model.bin\" is not the name of a safetensors file"));
  write_weight_map(folder, {{"a", std::string("a\0.safetensors", 14)}});
  EXPECT_THAT(refusal(folder), HasAll(kIndex, "is not the name"));
  folder.write(kIndex, R"({"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}})");
  EXPECT_THAT(refusal(folder), HasAll(kIndex, "duplicate key \"a\""));
  folder.write(kIndex, "{");
  EXPECT_THAT(refusal(folder), HasAll(kIndex, "not valid JSON"));
}

TEST(CheckpointIndex, IndexAndFilesMustAgree) {
  const test::TemporaryFolder folder;
  write_two_shards(folder);
  json weight_map{{"a", kShard1}, {"b", kShard1}};
  for (int i = 0; i < 11; ++i) weight_map["lost" + std::to_string(i)] = kShard1;
  weight_map["z"] = kShard2;
  write_weight_map(folder, weight_map);
  EXPECT_THAT(refusal(folder), HasAll(kIndex, "13 tensors are not in the file", "\"b\" in " + std::string(kShard1),
                                      "\"lost0\" in", ", ..."));
  EXPECT_THAT(refusal(folder), Not(HasSubstr("\"z\"")));
}

TEST(CheckpointIndex, ATensorInTwoFilesIsRefused) {
  const test::TemporaryFolder folder;
  write_two_shards(folder);
  folder.write(kShard2, safetensors_of({{"a", "U8", {2}, "aa"}, {"b", "U8", {2}, "BB"}}));
  EXPECT_THAT(refusal(folder), HasAll("\"a\" lies in two files", kShard1, kShard2));
}

TEST(CheckpointIndex, TensorsThatTheIndexLeavesOutAreReadAndLogged) {
  const test::TemporaryFolder folder;
  write_two_shards(folder);
  folder.write(kShard2, safetensors_of({{"b", "U8", {2}, "BB"}, {"c", "U8", {2}, "CC"}}));
  EXPECT_THAT(log_of(folder), HasAll(kIndex, "1 tensors of its files are not listed", "\"c\""));
  EXPECT_EQ(bytes_of(CheckpointIndex(folder.path()), "c"), "CC");
}

}  // namespace
}  // namespace headway
