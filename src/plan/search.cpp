#include "headway/plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "headway/base/error.h"

namespace headway {
namespace {

/// Vocabulary groups that differ in size at this tp and attn_tp, or the one that is asked for.
std::vector<VocabGroup> vocab_groups(int64_t tp, int64_t attn_tp, std::optional<VocabGroup> wanted) {
  if (wanted) return {*wanted};
  std::vector<VocabGroup> groups = {VocabGroup::tp};
  if (attn_tp > 1 && attn_tp < tp) groups.push_back(VocabGroup::lm_head_tp);
  if (tp > 1) groups.push_back(VocabGroup::none);
  return groups;
}

std::vector<ParallelConfig> legal_layouts(const ModelConfig& model, const SearchOptions& options) {
  const int64_t tp = options.world;
  std::vector<int64_t> sizes = legal_attn_tp(model.total_q_heads, tp);
  std::reverse(sizes.begin(), sizes.end());  // the default first: it wins ties
  std::vector<ParallelConfig> layouts;
  for (int64_t attn_tp : sizes) {
    for (VocabGroup embedding : vocab_groups(tp, attn_tp, options.embedding_group)) {
      for (VocabGroup lm_head : vocab_groups(tp, attn_tp, options.lm_head_group)) {
        for (AttnReplicas mode : options.attn_replicas) {
          const bool repeats = attn_tp == tp && mode != options.attn_replicas.front();
          if (!repeats) layouts.push_back({options.world, tp, attn_tp, embedding, lm_head, mode});
        }
      }
    }
  }
  return layouts;
}

int64_t largest_parameters(const Plan& plan) {
  int64_t largest = 0;
  for (const RankPlan& rank : plan.ranks) largest = std::max(largest, rank.parameters.total());
  return largest;
}

/// Bytes of the fullest rank once every sequence has its full length in the cache.
double fullest_rank_bytes(const Plan& plan, const Workload& workload) {
  double fullest = 0;
  for (const RankPlan& rank : plan.ranks) {
    const auto sequences = static_cast<double>(local_sequences(plan, rank.replica, {workload.sequences, 1, 0}));
    const double cached = sequences * static_cast<double>(workload.max_model_len * rank.kv_bytes_per_token);
    fullest = std::max(fullest, static_cast<double>(rank.parameters.total()) + cached);
  }
  return fullest;
}

/// What is minimised.
double score(const Candidate& candidate, const SearchOptions& options) {
  switch (options.objective) {
    case Objective::latency:
      return candidate.decode_one.total_s();
    case Objective::throughput:
      return 1 / candidate.decode_tokens_per_s;
    case Objective::memory:
      return candidate.kv_tokens ? -static_cast<double>(*candidate.kv_tokens)
                                 : fullest_rank_bytes(candidate.plan, options.workload);
  }
  return 0;
}

struct Scored {
  double score;
  Candidate candidate;
};

/// Predicted times are not worth more than a percent: layouts as close as that to each other, counted in steps from
/// the best, are ordered by the memory that they take. What is exact, bytes and tokens, is compared exactly.
void sort_best_first(std::vector<Scored>& scored, Objective objective) {
  constexpr double kStep = 1.01;
  double best = std::numeric_limits<double>::infinity();
  for (const Scored& entry : scored) {
    if (entry.candidate.fits) best = std::min(best, entry.score);
  }
  const auto key = [&](const Scored& entry) {
    const double steps = std::floor(std::log(entry.score / best) / std::log(kStep));
    const bool exact = objective == Objective::memory;
    return std::tuple(!entry.candidate.fits, exact ? entry.score : steps, largest_parameters(entry.candidate.plan),
                      entry.candidate.decode_one.total_s());
  };
  std::stable_sort(scored.begin(), scored.end(), [&](const Scored& a, const Scored& b) { return key(a) < key(b); });
}

int64_t sequences_that_fit(const Workload& workload, const std::optional<int64_t>& kv_tokens) {
  if (!kv_tokens) return workload.sequences;
  return std::min(workload.sequences, *kv_tokens / std::max<int64_t>(workload.context, 1));
}

}  // namespace

std::string_view name_of(Objective objective) {
  switch (objective) {
    case Objective::latency:
      return "latency";
    case Objective::throughput:
      return "throughput";
    case Objective::memory:
      return "memory";
  }
  return "?";
}

Objective objective_from_name(std::string_view name) {
  for (Objective objective : {Objective::latency, Objective::throughput, Objective::memory}) {
    if (name == name_of(objective)) return objective;
  }
  throw ConfigError(fmt::format("no objective \"{}\"; legal: latency, throughput, memory", name));
}

Candidate assess(Plan plan, const MachineFigures& figures, const Workload& workload,
                 const std::optional<RankMemory>& memory) {
  Candidate candidate;
  if (memory) candidate.kv_tokens = kv_token_capacity(plan, *memory);
  candidate.sequences = sequences_that_fit(workload, candidate.kv_tokens);
  candidate.fits = candidate.sequences > 0;
  candidate.decode_one = cost_of(plan, figures, {1, 1, workload.context});
  candidate.decode_many = cost_of(plan, figures, {candidate.sequences, 1, workload.context});
  candidate.prefill = cost_of(plan, figures, {1, workload.prompt_tokens, workload.prompt_tokens / 2});
  if (candidate.fits) {
    candidate.decode_tokens_per_s = static_cast<double>(candidate.sequences) / candidate.decode_many.total_s();
  }
  candidate.plan = std::move(plan);
  return candidate;
}

std::vector<Candidate> search_layouts(const ModelConfig& model, const SearchOptions& options) {
  std::vector<Scored> scored;
  for (const ParallelConfig& parallel : legal_layouts(model, options)) {
    Candidate candidate =
        assess(make_plan(model, parallel, options.dtype), options.figures, options.workload, options.memory);
    scored.push_back({score(candidate, options), std::move(candidate)});
  }
  sort_best_first(scored, options.objective);
  std::vector<Candidate> candidates;
  for (Scored& entry : scored) candidates.push_back(std::move(entry.candidate));
  return candidates;
}

}  // namespace headway
