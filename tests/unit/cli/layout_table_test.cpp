#include "cli/layout_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>

namespace headway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ParallelConfig parallel_of(int64_t tp, int64_t attn_tp) {
  ParallelConfig parallel;
  parallel.world = parallel.tp = tp;
  parallel.attn_tp = attn_tp;
  return parallel;
}

Plan plan_of(int64_t q_heads, int64_t kv_heads, const ParallelConfig& parallel) {
  ModelConfig model;
  model.architecture = "Qwen2ForCausalLM";
  model.total_q_heads = q_heads;
  model.total_kv_heads = kv_heads;
  model.intermediate_size = 1536;
  model.vocab_size = 49152;
  return make_plan(model, parallel, DType::F32);
}

std::vector<RankReport> reports_of(int ranks) {
  std::vector<RankReport> reports(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    reports[rank].rank = {rank};
    reports[rank].parameter_bytes = (rank + 1) * 1024;
  }
  return reports;
}

/// The cells of the line that begins with `rank`.
std::vector<std::string> cells_of(const std::string& table, const std::string& rank) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> cells{std::istream_iterator<std::string>(words), {}};
    if (!cells.empty() && cells[0] == rank) return cells;
  }
  return {};
}

using Cells = std::vector<std::string>;

TEST(LayoutTable, NineOverThreeOnTwoRanksMarksTheSharedKvHead) {
  const std::string table = layout_table(plan_of(9, 3, parallel_of(2, 2)), reports_of(2), false);
  EXPECT_THAT(table, HasSubstr("9 query / 3 KV heads; tp 2, attention over 2\n"));
  EXPECT_EQ(cells_of(table, "0"), (Cells{"0", "0", "0-3", "0", "1", "0-767", "0-24575", "0-24575", "1.0", "KiB"}));
  EXPECT_EQ(cells_of(table, "1"),
            (Cells{"1", "0", "4-8", "1*", "2", "768-1535", "24576-49151", "24576-49151", "2.0", "KiB"}));
  EXPECT_THAT(table, HasSubstr("* an earlier rank"));
}

TEST(LayoutTable, ReplicasRepeatTheirHeads) {
  ParallelConfig parallel = parallel_of(4, 2);
  parallel.lm_head_group = VocabGroup::lm_head_tp;
  parallel.embedding_group = VocabGroup::none;
  const std::string table = layout_table(plan_of(4, 2, parallel), reports_of(4), false);
  EXPECT_THAT(table, HasSubstr("attention over 2, 2 replicas (replicate)"));
  EXPECT_EQ(cells_of(table, "1"), (Cells{"1", "0", "2-3", "1", "384-767", "0-49151", "24576-49151", "2.0", "KiB"}));
  EXPECT_EQ(cells_of(table, "3"), (Cells{"3", "1", "2-3", "1", "1152-1535", "0-49151", "24576-49151", "4.0", "KiB"}));
  EXPECT_THAT(table, Not(HasSubstr("*")));
}

TEST(LayoutTable, ColoursOnlyWhereAskedFor) {
  EXPECT_THAT(layout_table(plan_of(9, 3, parallel_of(2, 2)), reports_of(2), false), Not(HasSubstr("\x1b")));
  EXPECT_THAT(layout_table(plan_of(9, 3, parallel_of(2, 2)), reports_of(2), true), HasSubstr("\x1b"));
}

}  // namespace
}  // namespace headway
