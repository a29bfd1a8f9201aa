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

namespace {

/// A table with a column for each candidate.
class Comparison {
 public:
  explicit Comparison(const std::vector<Candidate>& candidates) : candidates_(candidates), table_(header(candidates)) {}

  template <typename Cell>
  void add(const std::string& what, const Cell& cell) {
    std::vector<std::string> row = {what};
    for (const Candidate& candidate : candidates_) row.push_back(cell(candidate));
    table_.add(std::move(row));
  }

  std::string text(const Palette& palette) const { return table_.text(palette); }

 private:
  static std::vector<std::string> header(const std::vector<Candidate>& candidates) {
    std::vector<std::string> header = {""};
    for (size_t i = 1; i <= candidates.size(); ++i) header.push_back(fmt::format("#{}", i));
    return header;
  }

  const std::vector<Candidate>& candidates_;
  TextTable table_;
};

void add_layout(Comparison& comparison) {
  comparison.add("attention (lm_head_tp)",
                 [](const Candidate& c) { return fmt::format("{}", c.plan.parallel.attn_tp); });
  comparison.add("replicas", [](const Candidate& c) {
    const int replicas = c.plan.replicas();
    return replicas == 1 ? "1" : fmt::format("{} {}", replicas, name_of(c.plan.parallel.attn_replicas));
  });
  comparison.add("embedding on",
                 [](const Candidate& c) { return std::string(name_of(c.plan.parallel.embedding_group)); });
  comparison.add("LM head on", [](const Candidate& c) { return std::string(name_of(c.plan.parallel.lm_head_group)); });
}

void add_holdings(Comparison& comparison) {
  comparison.add("query heads per rank", [](const Candidate& c) {
    return spread(c.plan, [](const RankPlan& r) { return r.heads.local_q_heads(); });
  });
  comparison.add("KV heads per rank", [](const Candidate& c) {
    return spread(c.plan, [](const RankPlan& r) { return r.heads.local_kv_heads(); });
  });
  comparison.add("MLP columns per rank", [](const Candidate& c) {
    return spread(c.plan, [](const RankPlan& r) { return r.mlp_columns.size(); });
  });
  comparison.add("parameters, fullest rank", [](const Candidate& c) {
    return bytes_text(smallest_and_largest(c.plan, [](const RankPlan& r) { return r.parameters.total(); }).second);
  });
  comparison.add("KV per token, fullest rank", [](const Candidate& c) {
    return bytes_text(smallest_and_largest(c.plan, [](const RankPlan& r) { return r.kv_bytes_per_token; }).second);
  });
}

void add_predictions(Comparison& comparison, const PlanReport& report, const Palette& palette) {
  const int64_t sequences = report.workload.sequences;
  const auto fits_or = [&](const Candidate& c, const std::string& text) {
    return c.fits ? text : palette.bad("does not fit");
  };
  if (report.memory) {
    comparison.add("KV tokens that fit",
                   [&](const Candidate& c) { return fits_or(c, grouped(c.kv_tokens.value_or(0))); });
  }
  comparison.add("decode step, 1 sequence", [](const Candidate& c) { return seconds_text(c.decode_one.total_s()); });
  if (sequences > 1) {
    comparison.add(fmt::format("tokens/s, {} sequences", sequences), [&](const Candidate& c) {
      const std::string fewer = c.sequences < sequences ? fmt::format(" ({} fit)", c.sequences) : "";
      return fits_or(c, fmt::format("{:.1f}{}", c.decode_tokens_per_s, fewer));
    });
  }
  comparison.add(fmt::format("prompt of {}", report.workload.prompt_tokens),
                 [](const Candidate& c) { return seconds_text(c.prefill.total_s()); });
  comparison.add("cost of unevenness", [](const Candidate& c) { return percent_text(c.decode_one.uneven_cost()); });
}

void add_peers(Comparison& comparison, const Plan& any_plan, const Palette& palette) {
  const std::vector<PeerVerdict> engines = peer_verdicts(any_plan.model, any_plan.parallel);
  for (size_t i = 0; i < engines.size(); ++i) {
    comparison.add(std::string(engines[i].engine), [&](const Candidate& c) {
      return verdict_text(peer_verdicts(c.plan.model, c.plan.parallel)[i], palette);
    });
  }
}

}  // namespace

std::string search_section(const PlanReport& report, const Palette& palette) {
  const Plan& best = report.candidates.front().plan;
  Comparison comparison(report.candidates);
  add_layout(comparison);
  add_holdings(comparison);
  add_predictions(comparison, report, palette);
  add_peers(comparison, best, palette);
  return fmt::format("{}  {} of {} legal layouts for {} ranks, for {}; details of #1 below\n", palette.bold("Best"),
                     report.candidates.size(), report.layouts_tried, best.parallel.world, name_of(*report.objective)) +
         comparison.text(palette);
}

}  // namespace headway
