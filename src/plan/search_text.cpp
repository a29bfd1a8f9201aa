#include "plan/search_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/figures_text.h"

namespace headway {
namespace {

std::string count_text(int64_t smallest, int64_t largest) {
  return smallest == largest ? grouped(largest) : fmt::format("{}-{}", grouped(smallest), grouped(largest));
}

template <typename Of>
std::pair<int64_t, int64_t> smallest_and_largest(const Plan& plan, Of of) {
  const auto [low, high] = std::minmax_element(plan.ranks.begin(), plan.ranks.end(),
                                               [&](const auto& a, const auto& b) { return of(a) < of(b); });
  return {of(*low), of(*high)};
}

template <typename Of>
std::string spread(const Plan& plan, Of of) {
  const auto [low, high] = smallest_and_largest(plan, of);
  return count_text(low, high);
}

}  // namespace

std::string verdict_text(const PeerVerdict& verdict, const Palette& palette) {
  return verdict.served ? palette.good("served") : palette.bad("refused");
}

std::string search_section(const PlanReport& report, const Palette& palette) {
  std::vector<std::string> header = {""};
  for (size_t i = 1; i <= report.candidates.size(); ++i) header.push_back(fmt::format("#{}", i));
  TextTable table(header);
  const auto add = [&](const std::string& what, const auto& cell) {
    std::vector<std::string> row = {what};
    for (const Candidate& candidate : report.candidates) row.push_back(cell(candidate));
    table.add(std::move(row));
  };
  const auto fits_or = [&](const Candidate& c, std::string text) {
    return c.fits ? text : palette.bad("does not fit");
  };
  add("attention (lm_head_tp)", [](const Candidate& c) { return fmt::format("{}", c.plan.parallel.attn_tp); });
  add("replicas", [](const Candidate& c) {
    return c.plan.replicas() == 1 ? "1"
                                  : fmt::format("{} {}", c.plan.replicas(), name_of(c.plan.parallel.attn_replicas));
  });
  add("embedding on", [](const Candidate& c) { return std::string(name_of(c.plan.parallel.embedding_group)); });
  add("LM head on", [](const Candidate& c) { return std::string(name_of(c.plan.parallel.lm_head_group)); });
  add("query heads per rank",
      [](const Candidate& c) { return spread(c.plan, [](const RankPlan& r) { return r.heads.local_q_heads(); }); });
  add("KV heads per rank",
      [](const Candidate& c) { return spread(c.plan, [](const RankPlan& r) { return r.heads.local_kv_heads(); }); });
  add("MLP columns per rank",
      [](const Candidate& c) { return spread(c.plan, [](const RankPlan& r) { return r.mlp_columns.size(); }); });
  add("parameters, fullest rank", [](const Candidate& c) {
    return bytes_text(smallest_and_largest(c.plan, [](const RankPlan& r) { return r.parameters.total(); }).second);
  });
  add("KV per token, fullest rank", [](const Candidate& c) {
    return bytes_text(smallest_and_largest(c.plan, [](const RankPlan& r) { return r.kv_bytes_per_token; }).second);
  });
  if (report.memory) {
    add("KV tokens that fit", [&](const Candidate& c) { return fits_or(c, grouped(c.kv_tokens.value_or(0))); });
  }
  add("decode step, 1 sequence", [](const Candidate& c) { return seconds_text(c.decode_one.total_s()); });
  add(fmt::format("tokens/s, {} sequences", report.workload.sequences), [&](const Candidate& c) {
    const std::string fewer = c.sequences < report.workload.sequences ? fmt::format(" ({} fit)", c.sequences) : "";
    return fits_or(c, fmt::format("{:.1f}{}", c.decode_tokens_per_s, fewer));
  });
  add(fmt::format("prompt of {}", report.workload.prompt_tokens),
      [](const Candidate& c) { return seconds_text(c.prefill.total_s()); });
  add("cost of unevenness", [](const Candidate& c) { return percent_text(c.decode_one.uneven_cost()); });
  for (size_t peer = 0; peer < 2; ++peer) {
    const auto& plan = report.candidates.front().plan;
    add(std::string(peer_verdicts(plan.model, plan.parallel)[peer].engine),
        [&](const Candidate& c) { return verdict_text(peer_verdicts(c.plan.model, c.plan.parallel)[peer], palette); });
  }
  return fmt::format("{}  {} of {} legal layouts for {} ranks, for {}; details of #1 below\n", palette.bold("Best"),
                     report.candidates.size(), report.layouts_tried, report.candidates.front().plan.parallel.world,
                     name_of(*report.objective)) +
         table.text(palette);
}

}  // namespace headway
