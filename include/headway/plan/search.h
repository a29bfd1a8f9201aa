#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "headway/plan/cost.h"
#include "headway/plan/plan.h"

namespace headway {

/// What a layout is chosen for.
///   latency     the shortest decode step of one sequence
///   throughput  the most decoded tokens per second with as many sequences as asked for and as fit
///   memory      the most KV tokens in the ranks' memory; where that is not given, the least memory of the fullest
///               rank with all sequences cached
enum class Objective { latency, throughput, memory };
std::string_view name_of(Objective objective);         ///< "latency", "throughput", "memory"
Objective objective_from_name(std::string_view name);  ///< throws ConfigError naming the legal values

/// What the ranks will be asked to do.
struct Workload {
  int64_t sequences = 1;      ///< decoded together
  int64_t context = 0;        ///< cached tokens of each while it decodes, on average
  int64_t prompt_tokens = 0;  ///< of one prompt
  int64_t max_model_len = 0;  ///< tokens that a sequence may reach
};

/// A layout with its predicted figures.
struct Candidate {
  Plan plan;
  StepCost decode_one;               ///< one sequence
  StepCost decode_many;              ///< `sequences` of them
  StepCost prefill;                  ///< one prompt
  int64_t sequences = 0;             ///< of the workload, or fewer if memory holds no more
  double decode_tokens_per_s = 0;    ///< with `sequences`
  std::optional<int64_t> kv_tokens;  ///< where memory is given
  bool fits = true;                  ///< false if memory is given and too small for parameters and one context
};

/// Predicts the figures of one layout. Without `memory` everything fits.
Candidate assess(Plan plan, const MachineFigures& figures, const Workload& workload,
                 const std::optional<RankMemory>& memory);

/// What to search layouts for. Groups and modes that are set are kept; the others are tried.
struct SearchOptions {
  int64_t world = 1;
  Objective objective = Objective::latency;
  DType dtype = DType::BF16;
  std::optional<VocabGroup> embedding_group;  ///< absent: all are tried
  std::optional<VocabGroup> lm_head_group;
  std::vector<AttnReplicas> attn_replicas = {AttnReplicas::replicate};
  MachineFigures figures;
  Workload workload;
  std::optional<RankMemory> memory;
};

/// Every legal layout over `world` ranks, best first; those that do not fit come last. Layouts that place everything
/// alike are listed once.
std::vector<Candidate> search_layouts(const ModelConfig& model, const SearchOptions& options);

}  // namespace headway
