#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "headway/plan/balance.h"
#include "headway/plan/report.h"
#include "plan/figures_text.h"
#include "plan/json_report.h"
#include "plan/page.h"

namespace headway {
namespace {

constexpr size_t kGroupsShown = 8;
constexpr int64_t kSmallestSlider = 8;  // sizes to try even if fewer ranks were asked for
constexpr int64_t kLargestSlider = 64;  // beyond it only the size that was asked for

/// Numbers of a rank in a fixed order, as the page's `RANK_FIELDS` names them.
Json rank_row(const RankPlan& rank) {
  const ParameterBytes& bytes = rank.parameters;
  return {rank.replica,
          rank.heads.q_heads.begin,
          rank.heads.q_heads.end,
          rank.heads.kv_heads.begin,
          rank.heads.kv_heads.end,
          rank.replica > 0 ? 0 : copied_kv_heads(rank),
          rank.mlp_columns.begin,
          rank.mlp_columns.end,
          rank.embedding_rows.begin,
          rank.embedding_rows.end,
          rank.lm_head_rows.begin,
          rank.lm_head_rows.end,
          bytes.embedding,
          bytes.qkv_proj + bytes.o_proj,
          bytes.mlp,
          bytes.norms,
          bytes.lm_head,
          rank.kv_bytes_per_token};
}

/// Calls and bytes on each group in one decode step of one sequence, at the rank that sends most.
Json traffic_json(const Plan& plan) {
  Json list = Json::array();
  std::vector<CollectiveUse> most = collectives_of(plan, plan.ranks.front(), {});
  for (const RankPlan& rank : plan.ranks) {
    const auto uses = collectives_of(plan, rank, {});
    for (size_t i = 0; i < uses.size(); ++i) most[i].bytes = std::max(most[i].bytes, uses[i].bytes);
  }
  for (const CollectiveUse& use : most) {
    list.push_back({use.purpose, name_of(use.kind), name_of(use.group), use.group_size, use.calls, use.bytes});
  }
  return list;
}

Json layout_json(const Candidate& candidate) {
  Json json = candidate_json(candidate);
  json["groups"] = Json::array();
  for (GroupKind kind : {GroupKind::tp, GroupKind::lm_head_tp, GroupKind::attn_dp}) {
    json["groups"].push_back({name_of(kind), groups_text(candidate.plan.layout().groups(kind), kGroupsShown)});
  }
  json["ranks"] = Json::array();
  for (const RankPlan& rank : candidate.plan.ranks) json["ranks"].push_back(rank_row(rank));
  json["traffic"] = traffic_json(candidate.plan);
  json["uneven"] = uneven_json(candidate.plan);
  json["duplicated"] = duplicates_json(candidate.plan);
  return json;
}

std::set<int64_t> slider_sizes(const ParallelConfig& parallel) {
  std::set<int64_t> sizes = {parallel.tp};
  const int64_t largest = std::min(std::max(parallel.tp, kSmallestSlider), kLargestSlider);
  for (int64_t tp = 1; tp <= largest; ++tp) sizes.insert(tp);
  return sizes;
}

Json layouts_json(const PlanReport& report) {
  const Plan& chosen = report.candidates.front().plan;
  Json list = Json::array();
  for (int64_t tp : slider_sizes(chosen.parallel)) {
    for (int64_t attn_tp : legal_attn_tp(chosen.model.total_q_heads, tp)) {
      ParallelConfig parallel = chosen.parallel;
      parallel.world = parallel.tp = tp;
      parallel.attn_tp = attn_tp;
      list.push_back(layout_json(
          assess(make_plan(chosen.model, parallel, chosen.dtype), report.figures, report.workload, report.memory)));
    }
  }
  return list;
}

Json page_data(const PlanReport& report) {
  const Plan& plan = report.candidates.front().plan;
  const ModelConfig& model = plan.model;
  Json json = {{"model", report.model_name},
               {"architecture", model.architecture},
               {"dtype", name_of(plan.dtype)},
               {"layers", model.num_layers},
               {"hidden", model.hidden_size},
               {"q_heads", model.total_q_heads},
               {"kv_heads", model.total_kv_heads},
               {"head_dim", model.head_dim},
               {"mlp_columns", model.intermediate_size},
               {"vocabulary", model.vocab_size},
               {"tied", model.tie_word_embeddings},
               {"sequences", report.workload.sequences},
               {"context", report.workload.context},
               {"prompt_tokens", report.workload.prompt_tokens},
               {"figures", figures_json(report.figures)},
               {"tp", plan.parallel.tp},
               {"attn_tp", plan.parallel.attn_tp},
               {"layouts", layouts_json(report)}};
  if (report.memory) json["rank_memory"] = report.memory->bytes;
  return json;
}

/// JSON that may stand inside a script element: nothing in it can end the element.
std::string script_safe(std::string json) {
  for (size_t at = json.find('<'); at != std::string::npos; at = json.find('<', at)) json.replace(at, 1, "\\u003c");
  return json;
}

std::string html_escaped(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

void fill(std::string& page, std::string_view place, const std::string& content) {
  page.replace(page.find(place), place.size(), content);
}

}  // namespace

std::string plan_html(const PlanReport& report) {
  std::string page(kPlanPage);
  fill(page, "@TITLE@", html_escaped(report.model_name));
  fill(page, "@DATA@", script_safe(dump_json(page_data(report))));
  return page;
}

}  // namespace headway
