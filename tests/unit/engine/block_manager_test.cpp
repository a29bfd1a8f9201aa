#include "engine/block_manager.h"

#include <gtest/gtest.h>

#include "headway/base/error.h"

namespace headway {
namespace {

TEST(BlockManager, GrowsATableByWholeBlocks) {
  BlockManager blocks(5, 16);
  BlockTable table;
  EXPECT_TRUE(blocks.grow(table, 1));
  EXPECT_EQ(table.size(), 1u);
  EXPECT_TRUE(blocks.grow(table, 16));
  EXPECT_EQ(table.size(), 1u);
  EXPECT_TRUE(blocks.grow(table, 17));
  EXPECT_EQ(table, (BlockTable{0, 1}));
  EXPECT_EQ(blocks.free_blocks(), 3);
}

TEST(BlockManager, RefusesWithoutTakingAnything) {
  BlockManager blocks(3, 16);
  BlockTable first, second;
  ASSERT_TRUE(blocks.grow(first, 32));
  EXPECT_FALSE(blocks.grow(second, 17));
  EXPECT_TRUE(second.empty());
  EXPECT_EQ(blocks.free_blocks(), 1);
  EXPECT_TRUE(blocks.grow(second, 16));
}

TEST(BlockManager, NeverHandsABlockOutTwice) {
  BlockManager blocks(7, 4);
  BlockTable a, b, c;
  ASSERT_TRUE(blocks.grow(a, 8) && blocks.grow(b, 12));
  blocks.release(a);
  EXPECT_TRUE(a.empty());
  ASSERT_TRUE(blocks.grow(c, 16));
  std::vector<bool> seen(7, false);
  for (const BlockTable* table : {&b, &c}) {
    for (int32_t block : *table) {
      EXPECT_FALSE(seen[block]);
      seen[block] = true;
    }
  }
  EXPECT_EQ(blocks.free_blocks(), 0);
}

TEST(BlockManager, NamesABlockThatIsNotInUse) {
  BlockManager blocks(4, 4);
  BlockTable table;
  ASSERT_TRUE(blocks.grow(table, 5));
  BlockTable copy = table;
  blocks.release(table);
  EXPECT_THROW(blocks.release(copy), ArgumentError);
  BlockTable foreign{9};
  EXPECT_THROW(blocks.release(foreign), ArgumentError);
  EXPECT_THROW(BlockManager(0, 16), ArgumentError);
}

}  // namespace
}  // namespace headway
