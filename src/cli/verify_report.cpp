#include "cli/verify_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "cli/verify_figure.h"
#include "plan/text_table.h"

namespace headway {
namespace {

std::string layout_name(const VerifyLayout& layout) {
  return fmt::format("T={} A={}", layout.tp, layout.attn_tp);
}

std::string verdict(const LayoutOutcome& outcome, const Palette& palette) {
  if (outcome.agrees()) return palette.good("agrees");
  if (outcome.comparison) return palette.bad("DIFFERS");
  return palette.bad(fmt::format("FAILED, exit code {}", outcome.exit_code));
}

std::string tokens_text(const Comparison& comparison) {
  if (!comparison.token) return "same";
  const TokenDifference& token = *comparison.token;
  const std::string actual = token.actual ? std::to_string(*token.actual) : "none";
  return fmt::format("prompt {} new {}: {} for {}, gap {:.2g}", token.prompt, token.index, actual, token.expected,
                     token.gap);
}

std::vector<std::string> row(const std::string& name, const LayoutOutcome& outcome, const Palette& palette) {
  if (!outcome.comparison) return {name, "", "", "", "", verdict(outcome, palette)};
  const LogitDifference& logit = outcome.comparison->logit;
  const std::string where =
      logit.absolute == 0 ? ""
                          : fmt::format("prompt {} position {} token {}", logit.prompt, logit.position, logit.token);
  return {name,
          fmt::format("{:.2e} ({:.2e})", logit.relative, logit.absolute),
          where,
          fmt::format("{:.2e}", outcome.comparison->logprob.value),
          tokens_text(*outcome.comparison),
          verdict(outcome, palette)};
}

/// The rows of a report in order, each with its name.
std::vector<std::pair<std::string, const LayoutOutcome*>> rows_of(const VerifyReport& report) {
  std::vector<std::pair<std::string, const LayoutOutcome*>> rows;
  if (report.reference) rows.emplace_back("T=1, reference", &*report.reference);
  for (const LayoutOutcome& outcome : report.layouts) rows.emplace_back(layout_name(outcome.layout), &outcome);
  return rows;
}

std::string bisection_text(const Bisection& bisection) {
  if (!bisection.first) {
    return "no layer differs: look at the final norm and the LM head or, if only tokens differ, at decoding";
  }
  const Deviation& first = *bisection.first;
  const std::string heads = first.kv_heads.empty() ? "" : fmt::format(" (KV head {})", fmt::join(first.kv_heads, ", "));
  return fmt::format("first in layer {}, {}{}, on rank {}: relative difference {:.2g}", first.layer,
                     name_of(first.part), heads, fmt::join(bisection.ranks, ", "), first.relative);
}

std::string explanations(const VerifyReport& report, const Palette& palette) {
  std::string text;
  for (const auto& [name, outcome] : rows_of(report)) {
    if (outcome->agrees() || !outcome->comparison) continue;
    text += fmt::format("{}: {}\n", palette.bold(name), fmt::join(outcome->comparison->breaches, "; "));
    if (outcome->bisection) text += fmt::format("  {}\n", bisection_text(*outcome->bisection));
  }
  return text.empty() ? text : text + "\n";
}

std::string prompts_text(const std::vector<int64_t>& tokens) {
  const auto [fewest, most] = std::minmax_element(tokens.begin(), tokens.end());
  const std::string length = *fewest == *most ? std::to_string(*most) : fmt::format("{} to {}", *fewest, *most);
  return fmt::format("{} {} of {} tokens", tokens.size(), tokens.size() == 1 ? "prompt" : "prompts", length);
}

std::string title(const VerifyReport& report) {
  const ModelConfig& model = report.model;
  return fmt::format("headway {} verify: {} ({}), {} query / {} KV heads, {} layers, {}\n{}, {} greedy tokens each\n",
                     HEADWAY_VERSION, report.model_name, model.architecture, model.total_q_heads, model.total_kv_heads,
                     model.num_layers, report.dtype, prompts_text(report.prompt_tokens), report.tokens);
}

std::string figure(const VerifyReport& report) {
  std::vector<DifferenceBar> bars;
  for (const auto& [name, outcome] : rows_of(report)) {
    if (!outcome->comparison) {
      bars.push_back({name, std::nullopt, 1, verdict(*outcome, Palette(false))});
      continue;
    }
    const Comparison& found = *outcome->comparison;
    const bool by_logit = found.bounds.same_tokens;
    std::string note = verdict(*outcome, Palette(false));
    if (outcome->bisection && outcome->bisection->first) {
      note += fmt::format(": layer {}, rank {}", outcome->bisection->first->layer,
                          fmt::join(outcome->bisection->ranks, " "));
    }
    bars.push_back({name, by_logit ? found.logit.relative : found.logprob.value,
                    by_logit ? found.bounds.relative_logit : found.logprob.bound, note});
  }
  return difference_figure(bars);
}

Json bisection_json(const std::optional<Bisection>& bisection) {
  if (!bisection) return {};
  if (!bisection->first) return {{"layer", nullptr}, {"part", nullptr}, {"ranks", Json::array()}};
  const Deviation& first = *bisection->first;
  return {{"layer", first.layer},
          {"part", name_of(first.part)},
          {"ranks", bisection->ranks},
          {"kv_heads", first.kv_heads},
          {"relative", first.relative}};
}

Json outcome_json(const LayoutOutcome& outcome) {
  Json json = outcome.comparison ? comparison_json(*outcome.comparison) : Json::object();
  json["tp"] = outcome.layout.tp;
  json["attn_tp"] = outcome.layout.attn_tp;
  json["agrees"] = outcome.agrees();
  json["exit_code"] = outcome.exit_code;
  json["bisection"] = bisection_json(outcome.bisection);
  return json;
}

}  // namespace

Bisection bisect(const std::vector<RankFindings>& findings) {
  const auto place = [](const Deviation& deviation) { return std::pair(deviation.layer, deviation.part); };
  Bisection bisection;
  for (const RankFindings& found : findings) {
    if (!found.deviation) continue;
    if (!bisection.first || place(*found.deviation) < place(*bisection.first)) {
      bisection = {found.deviation, {found.rank}};
    } else if (place(*found.deviation) == place(*bisection.first)) {
      bisection.ranks.push_back(found.rank);
      auto& heads = bisection.first->kv_heads;
      heads.insert(heads.end(), found.deviation->kv_heads.begin(), found.deviation->kv_heads.end());
      std::sort(heads.begin(), heads.end());
      heads.erase(std::unique(heads.begin(), heads.end()), heads.end());
      bisection.first->relative = std::max(bisection.first->relative, found.deviation->relative);
    }
  }
  return bisection;
}

bool VerifyReport::agrees() const {
  const auto rows = rows_of(*this);
  return std::all_of(rows.begin(), rows.end(), [](const auto& row) { return row.second->agrees(); });
}

std::string verify_text(const VerifyReport& report, bool colours) {
  const Palette palette(colours);
  TextTable table({"layout", "largest logit difference", "at", "log-probability", "greedy tokens", "verdict"});
  for (size_t column : {2, 4, 5}) table.align_left(column);
  for (const auto& [name, outcome] : rows_of(report)) table.add(row(name, *outcome, palette));
  return title(report) + "\n" + table.text(palette) + "\n" + explanations(report, palette) + figure(report) +
         (report.agrees() ? "All agree.\n" : "Not all agree.\n");
}

Json verify_json(const VerifyReport& report) {
  Json layouts = Json::array();
  for (const LayoutOutcome& outcome : report.layouts) layouts.push_back(outcome_json(outcome));
  return {{"model", report.model_name},
          {"dtype", report.dtype},
          {"prompt_tokens", report.prompt_tokens},
          {"tokens", report.tokens},
          {"reference", report.reference ? outcome_json(*report.reference) : Json()},
          {"layouts", layouts},
          {"agrees", report.agrees()}};
}

}  // namespace headway
