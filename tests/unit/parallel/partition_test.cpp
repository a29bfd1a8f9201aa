#include "headway/parallel/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "headway/base/error.h"

namespace headway {
namespace {

std::vector<HeadPartition> all_ranks(HeadCounts total, int size) {
  std::vector<HeadPartition> parts;
  for (int r = 0; r < size; ++r) parts.push_back(HeadPartition::of(total, size, {r}));
  return parts;
}

std::vector<int64_t> local_q(HeadCounts total, int size) {
  std::vector<int64_t> sizes;
  for (const auto& part : all_ranks(total, size)) sizes.push_back(part.local_q_heads());
  return sizes;
}

std::vector<int64_t> first_kv(HeadCounts total, int size) {
  std::vector<int64_t> heads;
  for (const auto& part : all_ranks(total, size)) heads.push_back(part.kv_heads.begin);
  return heads;
}

std::vector<int64_t> local_kv(HeadCounts total, int size) {
  std::vector<int64_t> sizes;
  for (const auto& part : all_ranks(total, size)) sizes.push_back(part.local_kv_heads());
  return sizes;
}

using Sizes = std::vector<int64_t>;

TEST(HeadPartition, WorkedExamples) {
  EXPECT_EQ(local_q({28, 4}, 8), (Sizes{3, 4, 3, 4, 3, 4, 3, 4}));
  EXPECT_EQ(local_kv({28, 4}, 8), Sizes(8, 1));
  EXPECT_EQ(local_q({9, 3}, 2), (Sizes{4, 5}));
  EXPECT_EQ(local_kv({9, 3}, 2), (Sizes{2, 2}));
  EXPECT_EQ(local_q({28, 4}, 3), (Sizes{9, 9, 10}));
  EXPECT_EQ(local_kv({28, 4}, 3), (Sizes{2, 2, 2}));
  EXPECT_EQ(local_q({14, 2}, 4), (Sizes{3, 4, 3, 4}));
}

TEST(HeadPartition, UnevenRunsOfNineOverThree) {
  EXPECT_EQ(HeadPartition::of({9, 3}, 2, {0}).runs(), (std::vector<HeadRun>{{{0, 3}, 0}, {{3, 4}, 1}}));
  EXPECT_EQ(HeadPartition::of({9, 3}, 2, {1}).runs(), (std::vector<HeadRun>{{{0, 2}, 0}, {{2, 5}, 1}}));
}

// Fault case A03: floor(rank * kv / size), never rank mod kv.
TEST(HeadPartition, EachRankOwnsTheKvHeadThatItsQueryHeadsRead) {
  EXPECT_EQ(first_kv({12, 2}, 4), (Sizes{0, 0, 1, 1}));
  EXPECT_EQ(first_kv({16, 2}, 8), (Sizes{0, 0, 0, 0, 1, 1, 1, 1}));
}

// Fault cases A04, A06 and A16.
TEST(HeadPartition, NoRankIsLeftWithoutAKvHead) {
  EXPECT_EQ(local_kv({4, 2}, 4), Sizes(4, 1));
  EXPECT_EQ(local_kv({2, 1}, 2), Sizes(2, 1));
  EXPECT_EQ(local_kv({28, 4}, 2), Sizes(2, 2));
}

TEST(HeadPartition, CopiesAreMarkedOnAllButTheFirstHolder) {
  EXPECT_FALSE(HeadPartition::of({28, 4}, 8, {0}).holds_kv_copy(0));
  EXPECT_TRUE(HeadPartition::of({28, 4}, 8, {1}).holds_kv_copy(0));
  EXPECT_FALSE(HeadPartition::of({9, 3}, 2, {0}).holds_kv_copy(1));
  EXPECT_TRUE(HeadPartition::of({9, 3}, 2, {1}).holds_kv_copy(1));
  EXPECT_FALSE(HeadPartition::of({9, 3}, 2, {1}).holds_kv_copy(2));
}

TEST(HeadPartition, EverySizeUpTo64CoversEveryHeadOnce) {
  for (int64_t kv = 1; kv <= 64; ++kv) {
    for (int64_t q = kv; q <= 64; q += kv) {
      for (int size = 1; size <= q; ++size) {
        int64_t next = 0;
        for (const auto& part : all_ranks({q, kv}, size)) {
          ASSERT_EQ(part.q_heads.begin, next);
          next = part.q_heads.end;
          ASSERT_GE(part.local_q_heads(), q / size);
          ASSERT_LE(part.local_q_heads(), (q + size - 1) / size);
          int64_t next_local = 0;
          for (const HeadRun& run : part.runs()) {
            ASSERT_EQ(run.q_heads.begin, next_local);
            next_local = run.q_heads.end;
            for (int64_t h = run.q_heads.begin; h < run.q_heads.end; ++h) {
              ASSERT_EQ(part.local_kv_head(h), run.kv_head);
              ASSERT_EQ(part.kv_heads.begin + run.kv_head, (part.q_heads.begin + h) / (q / kv));
            }
          }
          ASSERT_EQ(next_local, part.local_q_heads());
        }
        ASSERT_EQ(next, q);
      }
    }
  }
}

TEST(HeadPartition, EqualsTheEvenCutWhereSizesDivide) {
  for (int size : {1, 2, 4}) {
    for (int r = 0; r < size; ++r) {
      const auto part = HeadPartition::of({32, 4}, size, {r});
      EXPECT_EQ(part.q_heads, (Range{r * 32 / size, (r + 1) * 32 / size}));
      EXPECT_EQ(part.kv_heads, (Range{r * 4 / size, (r + 1) * 4 / size}));
    }
  }
}

TEST(HeadPartition, RefusesARankWithoutAHead) {
  try {
    HeadPartition::of({9, 3}, 10, {0});
    FAIL() << "10 ranks of 9 heads were accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "lm_head_tp: 9 query heads over 10 ranks leave rank 0 without a head");
  }
  EXPECT_THROW(HeadPartition::of({9, 2}, 1, {0}), ConfigError);
  EXPECT_THROW(HeadPartition::of({9, 3}, 2, {2}), ArgumentError);
}

TEST(DimPartition, WorkedExamples) {
  const auto sizes = dim_partition_sizes(4864, 14);
  EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 320), 8);
  EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 384), 6);
  EXPECT_EQ(dim_partition_sizes(128, 2), (Sizes{64, 64}));
  EXPECT_EQ(dim_partition_sizes(5, 2), (Sizes{4, 1}));
  EXPECT_EQ(dim_partition_sizes(321, 2), (Sizes{192, 129}));
}

TEST(DimPartition, MoreRanksThanRowsLeaveEmptyShards) {
  const auto sizes = dim_partition_sizes(20, 30);
  EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 0), 10);
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), 20);
}

TEST(DimPartition, EverySizeIsCoveredOnceAndNoRankIsEmptyNeedlessly) {
  for (int64_t total = 0; total <= 400; ++total) {
    for (int size = 1; size <= 64; ++size) {
      int64_t next = 0;
      for (int r = 0; r < size; ++r) {
        const auto part = DimPartition::of(total, size, {r});
        ASSERT_EQ(part.range.begin, next);
        ASSERT_GE(part.size(), total >= size ? 1 : 0);
        next = part.range.end;
      }
      ASSERT_EQ(next, total);
    }
  }
}

}  // namespace
}  // namespace headway
