#include "cli/verify_layouts.h"

#include <fmt/format.h>

#include <cstdio>
#include <sstream>

#include "cli/errors.h"
#include "headway/config/parallel_config.h"

namespace headway {
namespace {

std::vector<VerifyLayout> all_layouts(const ModelConfig& model, int64_t most_ranks) {
  std::vector<VerifyLayout> layouts;
  for (int64_t tp = 2; tp <= most_ranks; ++tp) {
    for (const int64_t attn_tp : legal_attn_tp(model.total_q_heads, tp)) layouts.push_back({tp, attn_tp});
  }
  return layouts;
}

VerifyLayout parse_layout(const std::string& text) {
  int tp = 0;
  int attn_tp = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%9d:%9d%c", &tp, &attn_tp, &rest) == 2) return {tp, attn_tp};
  throw UsageError(
      fmt::format("--layouts: \"{}\" is neither \"all\" nor T:A, sizes of the TP and attention groups", text));
}

void check(const VerifyLayout& layout, const ModelConfig& model, int64_t most_ranks) {
  if (layout.tp < 1) throw UsageError(fmt::format("--layouts: a TP size of {} is not at least 1", layout.tp));
  if (layout.tp > most_ranks) {
    throw UsageError(fmt::format("--layouts: {}:{} takes {} ranks, more than the {} of --ranks", layout.tp,
                                 layout.attn_tp, layout.tp, most_ranks));
  }
  as_usage([&] { return resolve_parallel_config(model, layout.tp, layout.tp, layout.attn_tp); });
}

}  // namespace

std::vector<VerifyLayout> verify_layouts(const std::string& text, const ModelConfig& model, int64_t most_ranks) {
  if (text == "all") return all_layouts(model, most_ranks);
  std::vector<VerifyLayout> layouts;
  std::istringstream list(text);
  for (std::string entry; std::getline(list, entry, ',');) {
    layouts.push_back(parse_layout(entry));
    check(layouts.back(), model, most_ranks);
  }
  if (layouts.empty()) throw UsageError("--layouts: the list is empty");
  return layouts;
}

}  // namespace headway
