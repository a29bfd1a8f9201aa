#include "headway/plan/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace headway {
namespace {

using Quantity = std::function<int64_t(const RankPlan&)>;

int64_t sum(const Plan& plan, const Quantity& quantity) {
  int64_t total = 0;
  for (const RankPlan& rank : plan.ranks) total += quantity(rank);
  return total;
}

/// The same model whole, on one rank.
RankPlan whole_model(const Plan& plan) {
  return make_plan(plan.model, ParallelConfig{}, plan.dtype).ranks.front();
}

void add_replicas(std::vector<Duplicate>& found, const Plan& plan) {
  const int copies = plan.replicas() * static_cast<int>(plan.parallel.world / plan.parallel.tp);
  if (copies == 1) return;
  const int64_t bytes = sum(plan, [](const RankPlan& r) { return r.parameters.qkv_proj + r.parameters.o_proj; });
  const int64_t kv_bytes = sum(plan, [](const RankPlan& r) { return r.kv_bytes_per_token; });
  // A token of a replica that owns its sequences is cached by that replica alone.
  const int64_t kv_copies = plan.replicas_own_sequences() ? 1 : copies;
  found.push_back({fmt::format("attention, {} replicas", copies), bytes - bytes / copies,
                   kv_copies == 1 ? 0 : kv_bytes - kv_bytes / kv_copies});
}

/// KV heads that several ranks of one attention group need.
void add_shared_kv_heads(std::vector<Duplicate>& found, const Plan& plan) {
  int64_t extra_heads = 0;
  std::vector<bool> shared(plan.model.total_kv_heads, false);
  for (const RankPlan& rank : plan.ranks) {
    if (rank.rank.value >= plan.parallel.attn_tp) break;
    for (int64_t head = rank.heads.kv_heads.begin; head < rank.heads.kv_heads.end; ++head) {
      if (!rank.heads.holds_kv_copy(head)) continue;
      ++extra_heads;
      shared[head] = true;
    }
  }
  if (extra_heads == 0) return;
  const int64_t element = size_of(plan.dtype);
  const int64_t rows = plan.model.num_layers * 2 * extra_heads * plan.model.head_dim;
  found.push_back({fmt::format("{} of {} KV heads, on several ranks of an attention group",
                               std::count(shared.begin(), shared.end(), true), plan.model.total_kv_heads),
                   rows * (plan.model.hidden_size + 1) * element, rows * element});
}

void add_if_larger(std::vector<Duplicate>& found, std::string what, int64_t held, int64_t needed) {
  if (held > needed) found.push_back({std::move(what), held - needed, 0});
}

void add_vocabulary(std::vector<Duplicate>& found, const Plan& plan, const RankPlan& whole) {
  add_if_larger(found, "embedding", sum(plan, [](const RankPlan& r) { return r.parameters.embedding; }),
                whole.parameters.embedding);
  const std::string lm_head = plan.model.tie_word_embeddings ? "LM head, a second cut of the tied table" : "LM head";
  add_if_larger(found, lm_head, sum(plan, [](const RankPlan& r) { return r.parameters.lm_head; }),
                whole.parameters.lm_head);
}

}  // namespace

std::vector<Unevenness> uneven_parts(const Plan& plan) {
  const std::vector<std::pair<std::string_view, Quantity>> quantities = {
      {"query heads", [](const RankPlan& r) { return r.heads.local_q_heads(); }},
      {"KV heads", [](const RankPlan& r) { return r.heads.local_kv_heads(); }},
      {"MLP columns", [](const RankPlan& r) { return r.mlp_columns.size(); }},
      {"embedding rows", [](const RankPlan& r) { return r.embedding_rows.size(); }},
      {"LM head rows", [](const RankPlan& r) { return r.lm_head_rows.size(); }},
      {"parameter bytes", [](const RankPlan& r) { return r.parameters.total(); }},
  };
  std::vector<Unevenness> uneven;
  for (const auto& [what, quantity] : quantities) {
    Unevenness part{what, quantity(plan.ranks.front()), quantity(plan.ranks.front()), 0};
    for (const RankPlan& rank : plan.ranks) {
      part.largest = std::max(part.largest, quantity(rank));
      part.smallest = std::min(part.smallest, quantity(rank));
    }
    part.mean = static_cast<double>(sum(plan, quantity)) / static_cast<double>(plan.ranks.size());
    if (part.largest != part.smallest) uneven.push_back(part);
  }
  return uneven;
}

std::vector<Duplicate> duplicates(const Plan& plan) {
  const RankPlan whole = whole_model(plan);
  std::vector<Duplicate> found;
  add_replicas(found, plan);
  add_shared_kv_heads(found, plan);
  add_if_larger(found, "MLP", sum(plan, [](const RankPlan& r) { return r.parameters.mlp; }), whole.parameters.mlp);
  add_vocabulary(found, plan, whole);
  add_if_larger(found, "norms", sum(plan, [](const RankPlan& r) { return r.parameters.norms; }),
                whole.parameters.norms);
  return found;
}

int64_t copied_kv_heads(const RankPlan& rank) {
  if (rank.replica > 0) return rank.heads.local_kv_heads();
  int64_t copies = 0;
  for (int64_t head = rank.heads.kv_heads.begin; head < rank.heads.kv_heads.end; ++head) {
    copies += rank.heads.holds_kv_copy(head) ? 1 : 0;
  }
  return copies;
}

}  // namespace headway
