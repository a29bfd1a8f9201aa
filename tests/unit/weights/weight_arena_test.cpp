#include "headway/weights/weight_arena.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include "headway/base/error.h"
#include "support/expect_error.h"

namespace headway {
namespace {

using test::HasAll;

uintptr_t address(const at::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data_ptr());
}

TEST(WeightArena, TensorsFollowEachOtherAlignedAndDoNotOverlap) {
  const auto arena = WeightArena::create(1000);
  const at::Tensor first = arena->allocate({3, 5}, c10::kBFloat16);
  const at::Tensor second = arena->allocate({7}, c10::kFloat);
  EXPECT_EQ(address(first) % (uintptr_t{2} << 20), 0u);
  EXPECT_EQ(address(second) - address(first), 64u);
  first.fill_(1.5);
  second.fill_(-2);
  EXPECT_EQ(first.sum().item<float>(), 22.5f);
  EXPECT_EQ(second.sum().item<float>(), -14.0f);
  EXPECT_EQ(first.sizes(), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(second.scalar_type(), c10::kFloat);
}

TEST(WeightArena, TensorsKeepTheMemoryAlive) {
  auto arena = WeightArena::create(4096);
  at::Tensor tensor = arena->allocate({1024}, c10::kFloat);
  const std::weak_ptr<WeightArena> watched = arena;
  arena.reset();
  EXPECT_FALSE(watched.expired());
  tensor.fill_(3);
  EXPECT_EQ(tensor.sum().item<float>(), 3072.0f);
  tensor.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(WeightArena, EmptyTensorsAndEmptyArenasAreLegal) {
  EXPECT_EQ(WeightArena::footprint({0, 5}, c10::kFloat), 0);
  const auto empty = WeightArena::create(0);
  const at::Tensor tensor = empty->allocate({0, 5}, c10::kFloat);
  EXPECT_EQ(tensor.numel(), 0);
  EXPECT_EQ(tensor.sizes(), (std::vector<int64_t>{0, 5}));
  EXPECT_EQ(empty->allocate({5, 0}, c10::kBFloat16).size(0), 5);
}

TEST(WeightArena, FootprintIsWholeCacheLines) {
  EXPECT_EQ(WeightArena::footprint({}, c10::kFloat), 64);
  EXPECT_EQ(WeightArena::footprint({16}, c10::kFloat), 64);
  EXPECT_EQ(WeightArena::footprint({17}, c10::kFloat), 128);
  EXPECT_EQ(WeightArena::footprint({3, 33}, c10::kBFloat16), 256);
}

TEST(WeightArena, TellsWhenItIsFullAndWhatCannotBe) {
  const auto arena = WeightArena::create(int64_t{2} << 20);
  arena->allocate({(int64_t{2} << 20) - 64}, c10::kByte);
  EXPECT_THAT(test::error_of<ArgumentError>([&] {
                arena->allocate({3, 11}, c10::kFloat);
              }),
              HasAll("[3, 11]", "192 bytes", "64 of 2097152"));
  EXPECT_NO_THROW(arena->allocate({16}, c10::kFloat));
  EXPECT_THAT(test::error_of<ArgumentError>([&] {
                WeightArena::footprint({int64_t{1} << 40, 1 << 30}, c10::kFloat);
              }),
              HasAll("1099511627776"));
  EXPECT_THROW(WeightArena::footprint({-1}, c10::kFloat), ArgumentError);
  EXPECT_THROW(WeightArena::create(-1), ArgumentError);
  EXPECT_THROW(WeightArena::create(int64_t{1} << 60), Error);
}

TEST(WeightArena, UsesHugePagesWhereTheSystemAllowsThem) {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string setting;
  std::getline(file, setting);
  if (!file) GTEST_SKIP() << "this system does not say whether it has huge pages";
  EXPECT_EQ(WeightArena::create(1)->huge_pages(), setting.find("[never]") == std::string::npos);
}

}  // namespace
}  // namespace headway
