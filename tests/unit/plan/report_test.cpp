#include "headway/plan/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "plan/figures_text.h"
#include "plan/text_table.h"
#include "unit/plan/models.h"

namespace headway {
namespace {

using testing::HasSubstr;
using testing::Not;

PlanReport report_of(const ModelConfig& model, const ParallelConfig& parallel) {
  PlanReport report;
  report.model_name = "small </script><b>";
  report.figures = machine_figures("cpu");
  report.workload = {2, 100, 64, 512};
  report.memory = RankMemory{1 << 20, 1 << 10};
  report.candidates = {assess(plan_of(model, parallel), report.figures, report.workload, report.memory)};
  return report;
}

TEST(FiguresText, WritesNumbersForPeople) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(bytes_text(int64_t{24} << 30), "24.0 GiB");
  EXPECT_EQ(bytes_text(1023 * 1024), "1.00 MiB");
  EXPECT_EQ(seconds_text(0.0123), "12.3 ms");
  EXPECT_EQ(seconds_text(4.2e-6), "4.20 us");
  EXPECT_EQ(percent_text(0.0314), "+3.1 %");
  EXPECT_EQ(ranks_text({{0}, {2}, {4}}), "[0 2 4]");
  EXPECT_EQ(ranks_text({{3}, {4}, {5}, {6}, {7}}), "[3-7]");
  EXPECT_EQ(groups_text({{{0}}, {{1}}, {{2}}}, 2), "[0] [1] and 1 more");
}

TEST(TextTable, AlignsCellsWithAndWithoutColours) {
  TextTable table({"name", "size"});
  table.add({"a", "1,000"});
  table.add({"longer", Palette(false).bad("7")});
  EXPECT_EQ(table.text(Palette(false)), "  name     size\n  a       1,000\n  longer      7\n");
  TextTable coloured({"", ""});
  coloured.add({Palette(true).good("yes"), "1"});
  coloured.add({"no", "22"});
  EXPECT_EQ(coloured.text(Palette(true)), "  \x1b[32myes\x1b[0m   1\n  no   22\n");
}

TEST(PlanJson, HasTheFieldsThatScriptsRead) {
  const Json json = parse_json(plan_json(report_of(small_model(), layout_of(4, 2))), "plan");
  EXPECT_EQ(json["tp"], 4);
  EXPECT_EQ(json["attn_tp"], 2);
  ASSERT_EQ(json["ranks"].size(), 4U);
  const Json& rank = json["ranks"][3];
  EXPECT_EQ(rank["rank"], 3);
  EXPECT_EQ(rank["q_heads"], Json({4, 9}));
  EXPECT_EQ(rank["kv_heads"], Json({1, 3}));
  EXPECT_EQ(rank["kv_head_copies"], Json({1, 2}));
  EXPECT_EQ(json["ranks"][1]["kv_head_copies"], Json::array({1}));
  EXPECT_EQ(rank["mlp_columns"], Json({192, 200}));
  EXPECT_EQ(rank["vocab_rows"], Json({256, 321}));
  EXPECT_EQ(rank["groups"]["lm_head_tp"], Json({2, 3}));
  EXPECT_EQ(rank["groups"]["attn_dp"], Json({1, 3}));
  const Plan plan = plan_of(small_model(), layout_of(4, 2));
  EXPECT_EQ(rank["parameter_bytes"], plan.ranks[3].parameters.total());
  EXPECT_EQ(rank["kv_bytes_per_token"], plan.ranks[3].kv_bytes_per_token);
  EXPECT_EQ(rank["kv_tokens"], kv_token_capacity(plan.ranks[3], {1 << 20, 1 << 10}));
  int64_t parts = 0;
  for (const auto& [name, bytes] : rank["parameter_bytes_by_part"].items()) parts += bytes.get<int64_t>();
  EXPECT_EQ(rank["parameter_bytes"], parts);
  EXPECT_EQ(rank["decode_step"][1]["bytes"], 3 * 2 * 72 * 2);
  EXPECT_EQ(rank["prefill_token"][1]["bytes"], 3 * 72 * 2);
  EXPECT_EQ(json.count("candidates"), 0U);
}

TEST(PlanJson, ListsTheBestOfASearch) {
  PlanReport report = report_of(small_model(), layout_of(4, 2));
  report.objective = Objective::memory;
  report.layouts_tried = 17;
  report.candidates.push_back(
      assess(plan_of(small_model(), layout_of(4, 4)), report.figures, report.workload, report.memory));
  const Json json = parse_json(plan_json(report), "plan");
  EXPECT_EQ(json["objective"], "memory");
  EXPECT_EQ(json["layouts_tried"], 17);
  ASSERT_EQ(json["candidates"].size(), 2U);
  EXPECT_EQ(json["candidates"][1]["attn_tp"], 4);
  EXPECT_EQ(json["candidates"][1]["peers"][0]["served"], false);
}

TEST(PlanText, HasEverySectionAndColoursOnlyIfAsked) {
  const PlanReport report = report_of(small_model(), layout_of(2, 2));
  const std::string text = plan_text(report, false);
  for (const char* section :
       {"Layout", "Holdings", "Parameters", "Memory", "Collectives", "Uneven", "Duplicated", "Time", "Other engines"}) {
    EXPECT_THAT(text, HasSubstr(section));
  }
  EXPECT_THAT(text, HasSubstr("[4, 9)  5"));
  EXPECT_THAT(text, HasSubstr("9 query heads do not divide by 2"));
  EXPECT_THAT(text, HasSubstr("1 of 3 KV heads"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(plan_text(report, true), HasSubstr("\x1b["));
}

TEST(PlanText, PutsTheBestSideBySide) {
  PlanReport report = report_of(qwen2_7b(), layout_of(8, 8));
  report.objective = Objective::latency;
  report.layouts_tried = 26;
  report.candidates.push_back(
      assess(plan_of(qwen2_7b(), layout_of(8, 4)), report.figures, report.workload, report.memory));
  const std::string text = plan_text(report, false);
  EXPECT_THAT(text, HasSubstr("2 of 26 legal layouts for 8 ranks, for latency"));
  EXPECT_THAT(text, HasSubstr("#2"));
  EXPECT_THAT(text, HasSubstr("does not fit"));  // 1 MiB is too little for 7B
}

TEST(PlanHtml, IsOneFileThatLoadsNothing) {
  const std::string page = plan_html(report_of(small_model(), layout_of(4, 2)));
  EXPECT_THAT(page, HasSubstr("<!DOCTYPE html>"));
  for (const char* reference : {"http:", "https:", "src=", "href=", "@import", "url(", "@DATA@", "@STYLE@"}) {
    EXPECT_THAT(page, Not(HasSubstr(reference)));
  }
}

TEST(PlanHtml, CarriesItsDataAsJsonThatCannotEndTheScript) {
  const std::string page = plan_html(report_of(small_model(), layout_of(4, 2)));
  const std::string opening = "id=\"data\">";
  const size_t begin = page.find(opening) + opening.size();
  const Json data = parse_json(page.substr(begin, page.find("</script>", begin) - begin), "page");
  EXPECT_EQ(data["model"], "small </script><b>");
  EXPECT_THAT(page, HasSubstr("<title>small &lt;/script&gt;&lt;b&gt;"));
  // Sizes 1 to 8, and for each the divisors up to 9 heads.
  EXPECT_EQ(data["layouts"].size(), 1U + 2 + 2 + 3 + 2 + 4 + 2 + 4);
  for (const Json& layout : data["layouts"]) EXPECT_EQ(layout["ranks"].size(), layout["tp"]);
}

}  // namespace
}  // namespace headway
