#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "headway/config/model_config.h"
#include "headway/config/parallel_config.h"
#include "headway/kernels/attention_batch.h"
#include "headway/layers/module.h"
#include "headway/parallel/parallel_state.h"
#include "headway/parallel/partition.h"
#include "headway/weights/weight_loader.h"

namespace headway {

/// Where the residual stream stands.
enum class ResidualPoint {
  embedding,  ///< before the first layer
  attention,  ///< after a layer's attention block
  mlp,        ///< after the layer
};

/// Sees the residual stream [tokens, hidden] at a point of `layer`, as this rank holds it. The tensor's memory is
/// reused afterwards.
using ResidualObserver = std::function<void(ResidualPoint point, int64_t layer, const at::Tensor& stream)>;

/// A decoder-only language model, sharded over the groups of a ParallelState. Every rank calls `forward` and
/// `compute_logits` with the same arguments.
class CausalLM : public Module {
 public:
  /// token_ids [tokens] int64 -> hidden states after the final norm, [tokens, hidden]. Reads and extends
  /// `caches`, one per layer. Where attention replicas own sequences (`replicas()` > 1), token_ids are those of all
  /// replicas in their order, the same on every rank, while `batch` is that of this rank's replica, and so is the
  /// result.
  virtual at::Tensor forward(const at::Tensor& token_ids, const AttentionBatch& batch,
                             std::vector<KVCacheView>& caches) = 0;

  /// Rows of hidden states -> logits [rows, vocab_size] over the whole vocabulary, the same on every rank.
  virtual at::Tensor compute_logits(const at::Tensor& hidden) = 0;

  virtual CheckpointNames checkpoint_names() const = 0;

  const ModelConfig& config() const { return config_; }
  /// Attention replicas that own sequences of their own; 1 where there is one or all compute the same.
  int replicas() const { return replicas_; }

  const HeadPartition& heads() const { return heads_; }  ///< what the KV cache is sized from

  /// Lets `observer` see the residual stream of every forward from now on; an empty one ends it. Each view costs one
  /// addition.
  void observe_residual(ResidualObserver observer) { residual_observer_ = std::move(observer); }

  /// Allots the paged cache of every layer: [blocks, block_size, local_kv_heads, head_dim], zeroes. On the CPU a block
  /// takes memory only once it is written.
  std::vector<KVCacheView> allocate_kv_cache(int64_t blocks, int64_t block_size) const;

  c10::ScalarType dtype() const { return any_weight().scalar_type(); }  ///< what is computed in
  c10::Device device() const { return any_weight().device(); }

 protected:
  CausalLM(ModelConfig config, HeadPartition heads, int replicas = 1)
      : config_(std::move(config)), heads_(heads), replicas_(replicas) {}

  const ResidualObserver& residual_observer() const { return residual_observer_; }

 private:
  at::Tensor any_weight() const;  // all that are not in int8 have the same dtype and device

  ModelConfig config_;
  HeadPartition heads_;
  int replicas_;
  ResidualObserver residual_observer_;
};

/// A model with its weights, and what loading them took on this rank.
struct LoadedModel {
  std::unique_ptr<CausalLM> model;
  LoadReport report;
  double load_seconds = 0;
};

/// How the weights of linears, embedding and LM head are held: as they are computed with, or in int8 with a scale for
/// each row (see quantize_to_int8; on the CPU only).
enum class Quantization { none, int8 };

/// "none", "int8". Throws ConfigError for another name.
Quantization quantization_from_name(const std::string& name);

/// What weights are loaded as, and where to.
struct LoadOptions {
  std::optional<DType> dtype;  ///< absent: the config's, else that of the stored tensors
  c10::Device device = c10::kCPU;
  Quantization quantization = Quantization::none;
  LoadProgress progress;
};

/// Builds the model that `config.architecture` names without weights. Throws ConfigError for an unknown architecture,
/// naming those that are known.
std::unique_ptr<CausalLM> build_model(const ModelConfig& config, const ParallelConfig& parallel,
                                      const ParallelState& state);

/// Builds, allots and fills a model from a checkpoint folder.
LoadedModel load_model(const std::filesystem::path& folder, const ModelConfig& config, const ParallelConfig& parallel,
                       const ParallelState& state, const LoadOptions& options = {});

/// Builds and allots a model and fills it with random weights, for measurements: only shapes and dtypes mean anything,
/// and the shards of different ranks do not fit together. Without a dtype in options and config it is F32.
LoadedModel random_model(const ModelConfig& config, const ParallelConfig& parallel, const ParallelState& state,
                         const LoadOptions& options = {});

}  // namespace headway
