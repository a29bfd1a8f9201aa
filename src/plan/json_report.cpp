#include "plan/json_report.h"

#include <algorithm>

#include "headway/plan/balance.h"
#include "headway/plan/peers.h"

namespace headway {
namespace {

Json ranks_json(const RankList& ranks) {
  Json list = Json::array();
  for (GlobalRank rank : ranks) list.push_back(rank.value);
  return list;
}

constexpr GroupKind kGroupKinds[] = {GroupKind::tp, GroupKind::lm_head_tp, GroupKind::attn_dp};

Json groups_json(const RankLayout& layout) {
  Json groups = Json::object();
  for (GroupKind kind : kGroupKinds) {
    Json lists = Json::array();
    for (const RankList& group : layout.groups(kind)) lists.push_back(ranks_json(group));
    groups[std::string(name_of(kind))] = std::move(lists);
  }
  return groups;
}

Json groups_of_rank_json(const RankLayout& layout, GlobalRank rank) {
  Json groups = Json::object();
  for (GroupKind kind : kGroupKinds) groups[std::string(name_of(kind))] = ranks_json(layout.group_of(kind, rank));
  return groups;
}

Json collectives_json(const std::vector<CollectiveUse>& uses) {
  Json list = Json::array();
  for (const CollectiveUse& use : uses) {
    list.push_back({{"purpose", use.purpose},
                    {"collective", name_of(use.kind)},
                    {"group", name_of(use.group)},
                    {"group_size", use.group_size},
                    {"calls", use.calls},
                    {"bytes", use.bytes}});
  }
  return list;
}

Json copies_json(const RankPlan& rank) {
  Json heads = Json::array();
  for (int64_t head = rank.heads.kv_heads.begin; head < rank.heads.kv_heads.end; ++head) {
    if (rank.replica > 0 || rank.heads.holds_kv_copy(head)) heads.push_back(head);
  }
  return heads;
}

Json parts_json(const ParameterBytes& bytes) {
  return {{"embedding", bytes.embedding}, {"qkv_proj", bytes.qkv_proj}, {"o_proj", bytes.o_proj}, {"mlp", bytes.mlp},
          {"norms", bytes.norms},         {"lm_head", bytes.lm_head}};
}

Json rank_json(const PlanReport& report, const RankLayout& layout, const RankPlan& rank) {
  const Plan& plan = report.candidates.front().plan;
  const Workload& workload = report.workload;
  Json json = {{"rank", rank.rank.value},
               {"replica", rank.replica},
               {"groups", groups_of_rank_json(layout, rank.rank)},
               {"q_heads", range_json(rank.heads.q_heads)},
               {"kv_heads", range_json(rank.heads.kv_heads)},
               {"kv_head_copies", copies_json(rank)},
               {"mlp_columns", range_json(rank.mlp_columns)},
               {"vocab_rows", range_json(rank.lm_head_rows)},
               {"embedding_rows", range_json(rank.embedding_rows)},
               {"lm_head_rows", range_json(rank.lm_head_rows)},
               {"parameter_bytes", rank.parameters.total()},
               {"parameter_bytes_by_part", parts_json(rank.parameters)},
               {"kv_bytes_per_token", rank.kv_bytes_per_token},
               {"decode_step", collectives_json(collectives_of(plan, rank, {workload.sequences, 1, 0}))},
               {"prefill_token", collectives_json(collectives_of(plan, rank, {1, 1, 0, false}))}};
  if (report.memory) json["kv_tokens"] = kv_token_capacity(rank, *report.memory);
  return json;
}

}  // namespace

Json range_json(const Range& range) {
  return {range.begin, range.end};
}

Json cost_json(const StepCost& cost) {
  return {
      {"attention_s", cost.attention.slowest_s}, {"mlp_s", cost.mlp.slowest_s}, {"lm_head_s", cost.lm_head.slowest_s},
      {"collectives_s", cost.collectives_s},     {"total_s", cost.total_s()},   {"evenly_spread_s", cost.balanced_s()}};
}

Json peers_json(const Plan& plan) {
  Json list = Json::array();
  for (const PeerVerdict& verdict : peer_verdicts(plan.model, plan.parallel)) {
    list.push_back({{"engine", verdict.engine}, {"served", verdict.served}, {"reason", verdict.reason}});
  }
  return list;
}

Json uneven_json(const Plan& plan) {
  Json list = Json::array();
  for (const Unevenness& part : uneven_parts(plan)) {
    list.push_back({{"what", part.what}, {"largest", part.largest}, {"smallest", part.smallest}, {"mean", part.mean}});
  }
  return list;
}

Json duplicates_json(const Plan& plan) {
  Json list = Json::array();
  for (const Duplicate& duplicate : duplicates(plan)) {
    list.push_back({{"what", duplicate.what},
                    {"extra_bytes", duplicate.extra_bytes},
                    {"extra_kv_bytes_per_token", duplicate.extra_kv_bytes_per_token}});
  }
  return list;
}

Json figures_json(const MachineFigures& figures) {
  return {{"name", figures.name},
          {"memory_bytes_per_s", figures.memory_bytes_per_s},
          {"operations_per_s", figures.operations_per_s},
          {"collective_latency_s", figures.collective_latency_s},
          {"collective_bytes_per_s", figures.collective_bytes_per_s}};
}

Json candidate_json(const Candidate& candidate) {
  const ParallelConfig& parallel = candidate.plan.parallel;
  Json json = {{"world", parallel.world},
               {"tp", parallel.tp},
               {"attn_tp", parallel.attn_tp},
               {"replicas", candidate.plan.replicas()},
               {"attn_replicas", name_of(parallel.attn_replicas)},
               {"embedding_group", name_of(parallel.embedding_group)},
               {"lm_head_group", name_of(parallel.lm_head_group)},
               {"sequences", candidate.sequences},
               {"fits", candidate.fits},
               {"decode_one", cost_json(candidate.decode_one)},
               {"decode_many", cost_json(candidate.decode_many)},
               {"decode_tokens_per_s", candidate.decode_tokens_per_s},
               {"prefill", cost_json(candidate.prefill)},
               {"peers", peers_json(candidate.plan)}};
  if (candidate.kv_tokens) json["kv_tokens"] = *candidate.kv_tokens;
  return json;
}

std::string plan_json(const PlanReport& report) {
  const Candidate& first = report.candidates.front();
  const RankLayout layout = first.plan.layout();
  Json json = candidate_json(first);
  json["model"] = report.model_name;
  json["dtype"] = name_of(first.plan.dtype);
  json["workload"] = {{"sequences", report.workload.sequences},
                      {"context", report.workload.context},
                      {"prompt_tokens", report.workload.prompt_tokens},
                      {"max_model_len", report.workload.max_model_len}};
  json["figures"] = figures_json(report.figures);
  json["groups"] = groups_json(layout);
  json["ranks"] = Json::array();
  for (const RankPlan& rank : first.plan.ranks) json["ranks"].push_back(rank_json(report, layout, rank));
  json["uneven"] = uneven_json(first.plan);
  json["duplicated"] = duplicates_json(first.plan);
  if (report.memory) json["rank_memory"] = {{"bytes", report.memory->bytes}, {"reserve", report.memory->reserve}};
  if (report.objective) {
    json["objective"] = name_of(*report.objective);
    json["layouts_tried"] = report.layouts_tried;
    json["candidates"] = Json::array();
    for (const Candidate& candidate : report.candidates) json["candidates"].push_back(candidate_json(candidate));
  }
  return dump_json(json, 2);
}

}  // namespace headway
