#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headway/plan/balance.h"
#include "headway/plan/peers.h"
#include "headway/plan/report.h"
#include "plan/figures_text.h"
#include "plan/search_text.h"
#include "plan/text_table.h"

namespace headway {
namespace {

constexpr size_t kGroupsShown = 8;

std::string cut_text(const Range& range) {
  return fmt::format("{} {:>7}", range_text(range), grouped(range.size()));
}

std::string headline(const PlanReport& report, const Palette& palette) {
  const Plan& plan = report.candidates.front().plan;
  const ModelConfig& model = plan.model;
  return fmt::format("{}  {}\n  {} layers, hidden {}, {} query / {} KV heads of {}, MLP {}, vocabulary {}{}, {}{}\n",
                     palette.bold(report.model_name), model.architecture, model.num_layers, grouped(model.hidden_size),
                     model.total_q_heads, model.total_kv_heads, model.head_dim, grouped(model.intermediate_size),
                     grouped(model.vocab_size), model.tie_word_embeddings ? " (tied)" : "", name_of(plan.dtype),
                     report.dtype_assumed ? " (assumed: config.json names no dtype)" : "");
}

std::string layout_section(const Plan& plan, const Palette& palette) {
  const ParallelConfig& parallel = plan.parallel;
  const RankLayout layout = plan.layout();
  std::string text = fmt::format(
      "{}  tp {}, attention (lm_head_tp) {}, {} attention replica{}{}; embedding on {}, LM head on {}\n",
      palette.bold("Layout"), parallel.tp, parallel.attn_tp, plan.replicas(), plan.replicas() == 1 ? "" : "s",
      plan.replicas() == 1 ? "" : fmt::format(" ({})", name_of(parallel.attn_replicas)),
      name_of(parallel.embedding_group), name_of(parallel.lm_head_group));
  TextTable table({"", ""});
  table.align_left(1);
  for (GroupKind kind : {GroupKind::tp, GroupKind::lm_head_tp, GroupKind::attn_dp}) {
    table.add({std::string(name_of(kind)), groups_text(layout.groups(kind), kGroupsShown)});
  }
  return text + table.text(palette);
}

bool same_vocabulary_cuts(const Plan& plan) {
  return plan.vocab_group_size(plan.parallel.embedding_group) == plan.vocab_group_size(plan.parallel.lm_head_group);
}

std::vector<std::string> holdings_header(const PlanReport& report) {
  std::vector<std::string> header = {"rank", "query heads", "KV heads", "copies", "MLP columns"};
  if (same_vocabulary_cuts(report.candidates.front().plan)) {
    header.push_back("vocabulary rows");
  } else {
    header.insert(header.end(), {"embedding rows", "LM head rows"});
  }
  header.insert(header.end(), {"parameters", "KV per token"});
  if (report.memory) header.push_back("KV tokens");
  return header;
}

std::vector<std::string> holdings_row(const PlanReport& report, const RankPlan& rank, const Palette& palette) {
  const int64_t copies = copied_kv_heads(rank);
  std::vector<std::string> row = {fmt::format("{}", rank.rank.value),
                                  fmt::format("{} {:>2}", range_text(rank.heads.q_heads), rank.heads.q_heads.size()),
                                  fmt::format("{} {:>2}", range_text(rank.heads.kv_heads), rank.heads.kv_heads.size()),
                                  copies == 0 ? "-" : palette.notable(fmt::format("{}", copies)),
                                  cut_text(rank.mlp_columns),
                                  cut_text(rank.embedding_rows)};
  if (!same_vocabulary_cuts(report.candidates.front().plan)) row.push_back(cut_text(rank.lm_head_rows));
  row.push_back(bytes_text(rank.parameters.total()));
  row.push_back(grouped(rank.kv_bytes_per_token) + " B");
  if (report.memory) row.push_back(grouped(kv_token_capacity(rank, *report.memory)));
  return row;
}

std::string holdings_section(const PlanReport& report, const Palette& palette) {
  TextTable table(holdings_header(report));
  for (const RankPlan& rank : report.candidates.front().plan.ranks) table.add(holdings_row(report, rank, palette));
  return palette.bold("Holdings") + "  [first, past the last); copies are KV heads that another rank holds first\n" +
         table.text(palette);
}

/// Ranks with the same parameter bytes share a line.
std::string parameters_section(const Plan& plan, const Palette& palette) {
  const auto key = [](const ParameterBytes& p) {
    return std::vector<int64_t>{p.embedding, p.qkv_proj, p.o_proj, p.mlp, p.norms, p.lm_head, p.total()};
  };
  std::vector<std::pair<std::vector<int64_t>, RankList>> lines;
  for (const RankPlan& rank : plan.ranks) {
    const auto found =
        std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line.first == key(rank.parameters); });
    if (found == lines.end()) {
      lines.push_back({key(rank.parameters), {rank.rank}});
    } else {
      found->second.push_back(rank.rank);
    }
  }
  TextTable table({"ranks", "embedding", "qkv_proj", "o_proj", "MLP", "norms", "LM head", "bytes in all"});
  for (const auto& [bytes, ranks] : lines) {
    std::vector<std::string> row = {ranks_text(ranks)};
    for (int64_t part : bytes) row.push_back(grouped(part));
    table.add(std::move(row));
  }
  return palette.bold("Parameters") + "  bytes by part\n" + table.text(palette);
}

std::string traffic_section(const PlanReport& report, const Palette& palette) {
  const Plan& plan = report.candidates.front().plan;
  const Step decode{report.workload.sequences, 1, report.workload.context};
  const int64_t sequences = decode.sequences;
  // One token of every replica's share, so that replicas with their own sequences show their mean.
  const Step prefill{1, 1, 0, false};
  const std::string title =
      palette.bold("Collectives") + fmt::format(
                                        "  per decode step of {} sequence{} and per prefill token; bytes are those "
                                        "that a rank hands in\n",
                                        sequences, sequences == 1 ? "" : "s");
  std::vector<CollectiveUse> most = collectives_of(plan, plan.ranks.front(), decode);
  std::vector<CollectiveUse> prefill_most = collectives_of(plan, plan.ranks.front(), prefill);
  for (const RankPlan& rank : plan.ranks) {
    const auto uses = collectives_of(plan, rank, decode);
    for (size_t i = 0; i < uses.size(); ++i) most[i].bytes = std::max(most[i].bytes, uses[i].bytes);
    const auto prefill_uses = collectives_of(plan, rank, prefill);
    for (size_t i = 0; i < prefill_uses.size(); ++i) {
      prefill_most[i].bytes = std::max(prefill_most[i].bytes, prefill_uses[i].bytes);
    }
  }
  TextTable table({"for", "collective", "group", "ranks", "calls", "bytes", "bytes per prefill token"});
  table.align_left(1);
  table.align_left(2);
  for (size_t i = 0; i < most.size(); ++i) {
    // The prefill token's uses are the first ones of the step's: only what follows sampling is missing.
    const bool in_prefill = i < prefill_most.size();
    table.add({std::string(most[i].purpose), std::string(name_of(most[i].kind)), std::string(name_of(most[i].group)),
               fmt::format("{}", most[i].group_size), grouped(most[i].calls), grouped(most[i].bytes),
               in_prefill ? grouped(prefill_most[i].bytes) : "once per prompt"});
  }
  return title + (table.has_rows() ? table.text(palette) : "  none\n");
}

std::string mean_text(double mean) {
  return mean < 1000 ? fmt::format("{:.2f}", mean) : grouped(static_cast<int64_t>(std::llround(mean)));
}

std::string balance_section(const PlanReport& report, const Palette& palette) {
  const Candidate& candidate = report.candidates.front();
  const std::vector<Unevenness> uneven = uneven_parts(candidate.plan);
  std::string text = palette.bold("Uneven") + "  largest rank against the mean\n";
  TextTable table({"", "largest", "smallest", "mean", "excess"});
  for (const Unevenness& part : uneven) {
    table.add({std::string(part.what), grouped(part.largest), grouped(part.smallest), mean_text(part.mean),
               percent_text(part.excess())});
  }
  if (uneven.empty()) return text + "  nothing\n";
  const StepCost& step = candidate.decode_one;
  return text + table.text(palette) +
         fmt::format("  A decode step takes {}; evenly spread it would take {}: {}\n", seconds_text(step.total_s()),
                     seconds_text(step.balanced_s()), palette.notable(percent_text(step.uneven_cost())));
}

std::string duplicates_section(const Plan& plan, const Palette& palette) {
  TextTable table({"", "parameters beyond one copy", "KV per token beyond one copy"});
  for (const Duplicate& duplicate : duplicates(plan)) {
    table.add({duplicate.what, bytes_text(duplicate.extra_bytes),
               duplicate.extra_kv_bytes_per_token == 0 ? "-" : bytes_text(duplicate.extra_kv_bytes_per_token)});
  }
  return palette.bold("Duplicated") + "  over all ranks\n" + (table.has_rows() ? table.text(palette) : "  nothing\n");
}

std::string cost_section(const PlanReport& report, const Palette& palette) {
  const Candidate& candidate = report.candidates.front();
  const MachineFigures& figures = report.figures;
  TextTable table({"predicted", "attention", "MLP", "LM head", "collectives", "in all", "tokens/s"});
  const auto add = [&](const std::string& what, const StepCost& cost, int64_t tokens) {
    table.add({what, seconds_text(cost.attention.slowest_s), seconds_text(cost.mlp.slowest_s),
               seconds_text(cost.lm_head.slowest_s), seconds_text(cost.collectives_s), seconds_text(cost.total_s()),
               fmt::format("{:.1f}", static_cast<double>(tokens) / cost.total_s())});
  };
  add("decode step, 1 sequence", candidate.decode_one, 1);
  if (candidate.sequences > 1) {
    add(fmt::format("decode step, {} sequences", candidate.sequences), candidate.decode_many, candidate.sequences);
  }
  add(fmt::format("prompt of {}", grouped(report.workload.prompt_tokens)), candidate.prefill,
      report.workload.prompt_tokens);
  return palette.bold("Time") +
         fmt::format("  context {}; per rank {:.4g} GB/s, {:.4g} TFLOP/s; collectives {:.4g} us, {:.4g} GB/s ({})\n",
                     grouped(report.workload.context), figures.memory_bytes_per_s / 1e9,
                     figures.operations_per_s / 1e12, figures.collective_latency_s * 1e6,
                     figures.collective_bytes_per_s / 1e9, figures.name) +
         table.text(palette);
}

std::string memory_section(const PlanReport& report, const Palette& palette) {
  if (!report.memory) return "";
  const Candidate& candidate = report.candidates.front();
  const int64_t tokens = candidate.kv_tokens.value_or(0);
  const std::string what =
      !parameters_fit(candidate.plan, *report.memory)
          ? palette.bad("the parameters of the fullest rank do not fit")
          : fmt::format("{} tokens of KV fit: {} sequence{} of {}", palette.good(grouped(tokens)),
                        grouped(tokens / report.workload.max_model_len),
                        tokens / report.workload.max_model_len == 1 ? "" : "s", grouped(report.workload.max_model_len));
  return fmt::format("{}  {} per rank, {} of it kept back: {}\n\n", palette.bold("Memory"),
                     bytes_text(report.memory->bytes), bytes_text(report.memory->reserve), what);
}

std::string peers_section(const Plan& plan, const Palette& palette) {
  TextTable table({"", "", ""});
  table.align_left(1);
  table.align_left(2);
  for (const PeerVerdict& verdict : peer_verdicts(plan.model, plan.parallel)) {
    table.add({std::string(verdict.engine), verdict_text(verdict, palette), verdict.reason});
  }
  return palette.bold("Other engines") + "  asked for this layout\n" + table.text(palette);
}

}  // namespace

std::string plan_text(const PlanReport& report, bool colours) {
  const Palette palette(colours);
  const Plan& plan = report.candidates.front().plan;
  std::string text = headline(report, palette) + "\n";
  if (report.objective) text += search_section(report, palette) + "\n";
  text += layout_section(plan, palette) + "\n";
  text += holdings_section(report, palette) + "\n";
  text += parameters_section(plan, palette) + "\n";
  text += memory_section(report, palette);
  text += traffic_section(report, palette) + "\n";
  text += balance_section(report, palette) + "\n";
  text += duplicates_section(plan, palette) + "\n";
  text += cost_section(report, palette) + "\n";
  text += peers_section(plan, palette);
  return text;
}

}  // namespace headway
