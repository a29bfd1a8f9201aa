#include "cli/layout_table.h"

#include <fmt/format.h>

#include "cli/progress_bar.h"
#include "headway/parallel/partition.h"
#include "plan/text_table.h"

namespace headway {
namespace {

std::string range_text(Range range) {
  if (range.empty()) return "none";
  return range.size() == 1 ? fmt::format("{}", range.begin) : fmt::format("{}-{}", range.begin, range.end - 1);
}

std::string kv_heads_text(const HeadPartition& heads) {
  std::string text;
  for (int64_t head = heads.kv_heads.begin; head < heads.kv_heads.end; ++head) {
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", head, heads.holds_kv_copy(head) ? "*" : "");
  }
  return text;
}

std::string heading(const ModelConfig& model, const ParallelConfig& parallel) {
  return fmt::format("{}: {} query / {} KV heads; tp {}, attention over {}{}\n", model.architecture,
                     model.total_q_heads, model.total_kv_heads, parallel.tp, parallel.attn_tp,
                     parallel.tp == parallel.attn_tp ? ""
                                                     : fmt::format(", {} replicas ({})", parallel.tp / parallel.attn_tp,
                                                                   name_of(parallel.attn_replicas)));
}

}  // namespace

std::string layout_table(const Plan& plan, const std::vector<RankReport>& reports, bool colours) {
  TextTable table(
      {"rank", "replica", "query heads", "KV heads", "MLP columns", "embedding rows", "LM head rows", "parameters"});
  bool copies = false;
  for (const RankReport& report : reports) {
    const RankPlan& rank = plan.ranks.at(report.rank.value);
    const std::string kv_heads = kv_heads_text(rank.heads);
    copies = copies || kv_heads.find('*') != std::string::npos;
    table.add({std::to_string(rank.rank.value), std::to_string(rank.replica), range_text(rank.heads.q_heads), kv_heads,
               range_text(rank.mlp_columns), range_text(rank.embedding_rows), range_text(rank.lm_head_rows),
               readable_bytes(report.parameter_bytes)});
  }
  const std::string note = copies ? "  * an earlier rank of the attention group holds this KV head too\n" : "";
  return heading(plan.model, plan.parallel) + table.text(Palette(colours)) + note;
}

}  // namespace headway
