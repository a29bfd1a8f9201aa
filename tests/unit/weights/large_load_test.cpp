#include <ATen/ops/empty.h>
#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include "headway/weights/weight_arena.h"
#include "unit/weights/loader_fixture.h"

namespace headway {
namespace {

using test::Checkpoint;

constexpr int64_t kMiB = int64_t{1} << 20;

/// `rows` x `columns` of whole numbers that bf16 and fp16 hold exactly, no two neighbours alike.
at::Tensor patterned(int64_t rows, int64_t columns, c10::ScalarType dtype) {
  return at::arange(rows * columns, at::kInt).remainder(251).to(dtype).view({rows, columns});
}

/// A line of /proc/self/status in bytes, e.g. "VmHWM".
int64_t memory_status(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1)) * 1024;
  }
  return -1;
}

/// Makes the peak of this process's memory its present value; false if the system does not allow it.
bool reset_peak_memory() {
  std::ofstream file("/proc/self/clear_refs");
  return static_cast<bool>(file << "5" << std::flush);
}

TEST(LargeLoad, TensorsOfMoreThanOneWindowArriveWhole) {
  const at::Tensor tall = patterned(3001, 2999, c10::kHalf), wide = patterned(5, 3000001, c10::kBFloat16);
  const Checkpoint checkpoint({{"tall.weight", tall}, {"wide.weight", wide}});
  const NamedParameter rows = test::allotted("tall.weight", {2990, 2999}, {{"", {3001, 2999}, 0, {7, 2997}}});
  const NamedParameter columns =
      test::allotted("wide.weight", {5, 1500001}, {{"", {5, 3000001}, 1, {1500000, 3000001}}}, c10::kBFloat16);
  EXPECT_EQ(checkpoint.load({rows, columns}).bytes_read, (2990 * 2999 + 5 * 1500001) * 2);
  EXPECT_TRUE(rows.parameter->tensor.equal(tall.narrow(0, 7, 2990).to(c10::kFloat)));
  EXPECT_TRUE(columns.parameter->tensor.equal(wide.narrow(1, 1500000, 1500001)));
}

TEST(LargeLoad, ProgressRisesToTheTotal) {
  const Checkpoint checkpoint({{"a.weight", patterned(4096, 4096, c10::kHalf)}});
  std::vector<int64_t> done;
  const LoadReport report = checkpoint.load({test::whole("a.weight", {4096, 4096}, c10::kHalf)}, {},
                                            [&](int64_t bytes_done, int64_t bytes_total) {
                                              EXPECT_EQ(bytes_total, 32 * kMiB);
                                              done.push_back(bytes_done);
                                            });
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  ASSERT_FALSE(done.empty());
  EXPECT_EQ(done.back(), 32 * kMiB);
  EXPECT_EQ(report.bytes_read, 32 * kMiB);
}

/// Loads the upper or the right half of eight tensors of 12 MiB into an arena and returns by how much memory peaked
/// above its size before.
int64_t peak_of_half_a_load(int64_t dim, c10::ScalarType stored, c10::ScalarType wanted) {
  const int64_t columns = 4096;
  const int64_t rows = 12 * kMiB / columns / static_cast<int64_t>(c10::elementSize(stored));
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (int i = 0; i < 8; ++i) tensors.emplace_back("t" + std::to_string(i), patterned(rows, columns, stored));
  const Checkpoint checkpoint(tensors);
  tensors.clear();
  const std::vector<int64_t> shape =
      dim == 0 ? std::vector<int64_t>{rows / 2, columns} : std::vector<int64_t>{rows, columns / 2};
  const Range half = dim == 0 ? Range{rows / 2, rows} : Range{columns / 2, columns};
  const auto arena = WeightArena::create(8 * WeightArena::footprint(shape, wanted));
  std::vector<NamedParameter> parameters;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "t" + std::to_string(i);
    parameters.push_back({name, std::make_shared<Parameter>(Parameter{
                                    name, shape, {{"", {rows, columns}, dim, half}}, arena->allocate(shape, wanted)})});
  }
  if (!reset_peak_memory()) return -1;
  const int64_t before = memory_status("VmRSS");
  checkpoint.load(parameters);
  return memory_status("VmHWM") - before;
}

// A rank's memory peaks at its size before loading, its share of the weights and the largest tensor.
TEST(LargeLoad, MemoryPeaksAtTheShareAndTheLargestTensor) {
  const int64_t share = 48 * kMiB, largest = 12 * kMiB;
  const int64_t rows_copied = peak_of_half_a_load(0, c10::kBFloat16, c10::kBFloat16);
  if (rows_copied < 0) GTEST_SKIP() << "/proc/self/clear_refs cannot be written here";
  EXPECT_LE(rows_copied, share + largest);
  EXPECT_GE(rows_copied, share);
  EXPECT_LE(peak_of_half_a_load(1, c10::kBFloat16, c10::kBFloat16), share + largest);
  EXPECT_LE(peak_of_half_a_load(0, c10::kHalf, c10::kFloat), 2 * share + largest);
  EXPECT_LE(peak_of_half_a_load(1, c10::kFloat, c10::kBFloat16), share / 2 + largest);
}

}  // namespace
}  // namespace headway
