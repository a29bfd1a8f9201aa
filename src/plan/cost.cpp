#include "headway/plan/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "headway/base/error.h"

namespace headway {
namespace {

/// What one rank does in one phase.
struct Work {
  double bytes = 0;
  double operations = 0;

  double seconds(const MachineFigures& figures) const {
    return std::max(bytes / figures.memory_bytes_per_s, operations / figures.operations_per_s);
  }
};

/// Reading `weight_bytes` once and multiplying them with `tokens` rows; nothing without tokens.
Work linear_work(const Plan& plan, int64_t weight_bytes, int64_t tokens) {
  if (tokens == 0) return {};
  const double elements = static_cast<double>(weight_bytes) / static_cast<double>(size_of(plan.dtype));
  return {static_cast<double>(weight_bytes), 2.0 * elements * static_cast<double>(tokens)};
}

Work attention_work(const Plan& plan, const RankPlan& rank, const Step& step) {
  const int64_t sequences = local_sequences(plan, rank.replica, step);
  const int64_t tokens = sequences * step.tokens_per_sequence;
  Work work = linear_work(plan, rank.parameters.qkv_proj + rank.parameters.o_proj, tokens);
  const auto context = static_cast<double>(step.context);
  work.bytes += static_cast<double>(sequences) * context * static_cast<double>(rank.kv_bytes_per_token);
  // Per token: scores and weighted values, each a dot product over head_dim for every cached token.
  const int64_t width = plan.model.num_layers * rank.heads.local_q_heads() * plan.model.head_dim;
  work.operations += 4.0 * static_cast<double>(width) * context * static_cast<double>(tokens);
  return work;
}

Work mlp_work(const Plan& plan, const RankPlan& rank, const Step& step) {
  return linear_work(plan, rank.parameters.mlp, step.tokens());
}

Work lm_head_work(const Plan& plan, const RankPlan& rank, const Step& step) {
  const int64_t bytes = rank.lm_head_rows.size() * plan.model.hidden_size * size_of(plan.dtype);
  return linear_work(plan, bytes, lm_head_input_rows(step));
}

using WorkOf = Work (*)(const Plan&, const RankPlan&, const Step&);

PhaseCost phase_cost(const Plan& plan, const MachineFigures& figures, const Step& step, WorkOf work_of) {
  PhaseCost cost;
  for (const RankPlan& rank : plan.ranks) {
    const double seconds = work_of(plan, rank, step).seconds(figures);
    cost.slowest_s = std::max(cost.slowest_s, seconds);
    cost.mean_s += seconds / static_cast<double>(plan.ranks.size());
  }
  return cost;
}

/// Each collective waits for the rank that has most to send.
double collectives_cost(const Plan& plan, const MachineFigures& figures, const Step& step) {
  std::vector<double> slowest;
  for (const RankPlan& rank : plan.ranks) {
    const std::vector<CollectiveUse> uses = collectives_of(plan, rank, step);
    slowest.resize(uses.size());
    for (size_t i = 0; i < uses.size(); ++i) slowest[i] = std::max(slowest[i], collective_seconds(uses[i], figures));
  }
  double seconds = 0;
  for (double use : slowest) seconds += use;
  return seconds;
}

double sent_bytes(const CollectiveUse& use) {
  const double others = use.group_size - 1;
  const double bytes = static_cast<double>(use.bytes);
  switch (use.kind) {
    case Collective::all_reduce:
      return 2 * bytes * others / use.group_size;
    case Collective::all_gather:
      return bytes * others;
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return bytes * others / use.group_size;
    case Collective::gather:
    case Collective::broadcast:
      return bytes;
    case Collective::barrier:
      return 0;
  }
  return 0;
}

}  // namespace

MachineFigures machine_figures(std::string_view name) {
  if (name == "cpu") return {"cpu", 14e9, 1e12, 3e-6, 5e9};
  if (name == "gpu") return {"gpu", 3e12, 600e12, 10e-6, 300e9};
  throw ConfigError(fmt::format("no figures for machine \"{}\"; legal: cpu, gpu", name));
}

double StepCost::total_s() const {
  return attention.slowest_s + mlp.slowest_s + lm_head.slowest_s + collectives_s;
}

double StepCost::balanced_s() const {
  return attention.mean_s + mlp.mean_s + lm_head.mean_s + collectives_s;
}

StepCost cost_of(const Plan& plan, const MachineFigures& figures, const Step& step) {
  return {phase_cost(plan, figures, step, attention_work), phase_cost(plan, figures, step, mlp_work),
          phase_cost(plan, figures, step, lm_head_work), collectives_cost(plan, figures, step)};
}

double collective_seconds(const CollectiveUse& use, const MachineFigures& figures) {
  const int rounds = std::bit_width(static_cast<unsigned>(use.group_size - 1));  // ceil(log2(size))
  return static_cast<double>(use.calls) * rounds * figures.collective_latency_s +
         sent_bytes(use) / figures.collective_bytes_per_s;
}

}  // namespace headway
