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

/// The rows of the vocabulary that a rank of the TP group holds when `group` shards it.
Range vocab_rows(const ModelConfig& model, const ParallelConfig& parallel, VocabGroup group, int rank) {
  const int tp = static_cast<int>(parallel.tp);
  const int attn_tp = static_cast<int>(parallel.attn_tp);
  if (group == VocabGroup::none) return {0, model.vocab_size};
  if (group == VocabGroup::tp) return DimPartition::of(model.vocab_size, tp, {rank}).range;
  return DimPartition::of(model.vocab_size, attn_tp, {rank % attn_tp}).range;
}

std::string heading(const ModelConfig& model, const ParallelConfig& parallel) {
  return fmt::format("{}: {} query / {} KV heads; tp {}, attention over {}{}\n", model.architecture,
                     model.total_q_heads, model.total_kv_heads, parallel.tp, parallel.attn_tp,
                     parallel.tp == parallel.attn_tp ? ""
                                                     : fmt::format(", {} replicas ({})", parallel.tp / parallel.attn_tp,
                                                                   name_of(parallel.attn_replicas)));
}

}  // namespace

std::string layout_table(const ModelConfig& model, const ParallelConfig& parallel,
                         const std::vector<RankReport>& reports, bool colours) {
  const int tp = static_cast<int>(parallel.tp);
  const int attn_tp = static_cast<int>(parallel.attn_tp);
  TextTable table(
      {"rank", "replica", "query heads", "KV heads", "MLP columns", "embedding rows", "LM head rows", "parameters"});
  bool copies = false;
  for (const RankReport& report : reports) {
    const int rank = report.rank.value;
    const auto heads = HeadPartition::of({model.total_q_heads, model.total_kv_heads}, attn_tp, {rank % attn_tp});
    const std::string kv_heads = kv_heads_text(heads);
    copies = copies || kv_heads.find('*') != std::string::npos;
    table.add({std::to_string(rank), std::to_string(rank / attn_tp), range_text(heads.q_heads), kv_heads,
               range_text(DimPartition::of(model.intermediate_size, tp, {rank}).range),
               range_text(vocab_rows(model, parallel, parallel.embedding_group, rank)),
               range_text(vocab_rows(model, parallel, parallel.lm_head_group, rank)),
               readable_bytes(report.parameter_bytes)});
  }
  const std::string note = copies ? "  * an earlier rank of the attention group holds this KV head too\n" : "";
  return heading(model, parallel) + table.text(Palette(colours)) + note;
}

}  // namespace headway
