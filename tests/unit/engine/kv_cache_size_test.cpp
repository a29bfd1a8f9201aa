#include "engine/kv_cache_size.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "headway/base/error.h"
#include "support/fake_model.h"

namespace headway {
namespace {

/// Two ranks of which this one is the first; all_gather brings what the other one has.
class OtherRank : public Communicator {
 public:
  explicit OtherRank(int64_t its_blocks) : its_blocks_(its_blocks) {}
  const char* backend_name() const override { return "fake"; }
  void all_gather(at::Tensor& output, const at::Tensor& input) override {
    output.copy_(at::cat({input.flatten(), at::tensor({its_blocks_}, at::kLong)}).view_as(output));
  }
  void all_reduce(at::Tensor&) override { unused(); }
  void reduce_scatter(at::Tensor&, const at::Tensor&) override { unused(); }
  void all_to_all(at::Tensor&, const at::Tensor&, const std::vector<int64_t>&, const std::vector<int64_t>&) override {
    unused();
  }
  void broadcast(at::Tensor&, GroupRank) override { unused(); }
  void send(const at::Tensor&, GroupRank, int) override { unused(); }
  void recv(at::Tensor&, GroupRank, int) override { unused(); }
  void barrier() override { unused(); }

 private:
  [[noreturn]] static void unused() { throw Error("not expected here"); }
  int64_t its_blocks_;
};

// Fault case C19: capacities 2111 and 2055.
TEST(KVCacheSize, AllRanksTakeTheSmallestNumberOfBlocks) {
  const GroupCoordinator as_first("world", {{0}, {1}}, {0}, std::make_shared<OtherRank>(2055));
  EXPECT_EQ(smallest_over_ranks(as_first, 2111, at::kCPU), 2055);
  const GroupCoordinator as_other("world", {{0}, {1}}, {0}, std::make_shared<OtherRank>(2111));
  EXPECT_EQ(smallest_over_ranks(as_other, 2055, at::kCPU), 2055);
}

TEST(KVCacheSize, TakesWhatIsWantedUpToHalfOfTheFreeMemory) {
  EXPECT_EQ(affordable_blocks(100, 1000, 1'000'000, 2), 100);
  EXPECT_EQ(affordable_blocks(400, 1000, 1'000'000, 2), 250);
  EXPECT_THROW(affordable_blocks(1, 1000, 3999, 2), Error);
  EXPECT_GT(free_memory_bytes(at::kCPU), 1 << 20);
}

TEST(KVCacheSize, BlockBytesFollowTheLocalKvHeads) {
  const testing::FakeModel model;  // one layer, one KV head of dimension 3, fp32
  EXPECT_EQ(kv_block_bytes(model, 16), 2 * 16 * 3 * 4);
}

}  // namespace
}  // namespace headway
