#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headway/base/dtype.h"
#include "headway/base/range.h"
#include "headway/config/model_config.h"
#include "headway/config/parallel_config.h"
#include "headway/parallel/partition.h"
#include "headway/parallel/rank_layout.h"
#include "headway/parallel/ranks.h"

namespace headway {

/// Bytes of the parameters that one rank holds, by part of the model.
struct ParameterBytes {
  int64_t embedding = 0;
  int64_t qkv_proj = 0;  ///< weights and biases
  int64_t o_proj = 0;
  int64_t mlp = 0;  ///< gate, up and down projections
  int64_t norms = 0;
  int64_t lm_head = 0;  ///< 0 where it reads the embedding's table

  int64_t total() const { return embedding + qkv_proj + o_proj + mlp + norms + lm_head; }
};

/// What one rank of a layout holds.
struct RankPlan {
  GlobalRank rank;
  int replica = 0;  ///< which of the tp / attn_tp attention replicas
  HeadPartition heads;
  Range mlp_columns;
  Range embedding_rows;
  Range lm_head_rows;
  ParameterBytes parameters;
  int64_t kv_bytes_per_token = 0;  ///< keys and values of all layers for one token that this rank caches
};

/// A model laid out over ranks: the figures that running ranks will count, known from config.json alone.
struct Plan {
  ModelConfig model;
  ParallelConfig parallel;
  DType dtype = DType::BF16;
  std::vector<RankPlan> ranks;  ///< by global rank

  RankLayout layout() const;
  int replicas() const;  ///< attention replicas of a TP group

  /// Ranks that share one copy of a vocabulary table: tp, attn_tp or 1.
  int vocab_group_size(VocabGroup group) const;

  /// Whether embedding and LM head are one tensor on each rank: tied, and over the same ranks.
  bool shares_vocabulary_table() const;

  /// Whether each replica owns sequences of its own, so that its tokens are not those of the others.
  bool replicas_own_sequences() const;
};

/// Lays `model` out. Throws ConfigError for sizes that do not divide, a rank without a head, a mode of replicas that
/// has no rules yet (cp), or an architecture whose parameters are not known.
Plan make_plan(const ModelConfig& model, const ParallelConfig& parallel, DType dtype);

/// The dtype that a checkpoint is served in if `wanted` is absent: the config's, else F32.
DType planned_dtype(const ModelConfig& model, std::optional<DType> wanted);

/// Memory of a rank, in bytes, and what of it is kept back from the KV cache beside the parameters.
struct RankMemory {
  int64_t bytes = 0;
  int64_t reserve = 0;  ///< activations, logits, the runtime itself
};

/// Whole tokens of KV that `rank` can cache beside its parameters; 0 if not even the parameters fit.
int64_t kv_token_capacity(const RankPlan& rank, const RankMemory& memory);

/// Tokens that the layout can cache: all ranks use as many blocks as the fullest can hold; replicas that own their
/// sequences add up.
int64_t kv_token_capacity(const Plan& plan, const RankMemory& memory);

/// Whether every rank's parameters fit.
bool parameters_fit(const Plan& plan, const RankMemory& memory);

}  // namespace headway
