#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "headway/plan/search.h"

namespace headway {

/// What `headway plan` has to say.
struct PlanReport {
  std::string model_name;
  bool dtype_assumed = false;          ///< the config names none and nobody chose one
  std::optional<Objective> objective;  ///< where layouts were searched
  size_t layouts_tried = 1;
  std::vector<Candidate> candidates;  ///< the layout at hand, or the best ones, best first
  MachineFigures figures;
  Workload workload;
  std::optional<RankMemory> memory;
};

/// Aligned tables for a terminal, with colours if asked for.
std::string plan_text(const PlanReport& report, bool colours);

/// One JSON object about the first candidate: {tp, attn_tp, ranks: [{rank, q_heads: [b, e], kv_heads: [b, e],
/// mlp_columns: [b, e], vocab_rows: [b, e], parameter_bytes, kv_bytes_per_token, ...}], ...}; `vocab_rows` are those
/// of the LM head. After a search, `candidates` has the summaries of all.
std::string plan_json(const PlanReport& report);

/// One self-contained page that draws the first candidate and every other legal size of it.
std::string plan_html(const PlanReport& report);

}  // namespace headway
