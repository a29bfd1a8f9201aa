#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "headway/weights/checkpoint_index.h"
#include "headway/weights/parameter.h"

namespace headway {

/// How a model's parameter names map to checkpoint names.
struct CheckpointNames {
  /// Of a fused module, section -> module in the checkpoint: {"qkv_proj", {{"q", "q_proj"}, ...}}.
  std::map<std::string, std::map<std::string, std::string>> sections;
  /// Parameters whose data stands under another name: {"lm_head.weight", "model.embed_tokens.weight"} when tied.
  std::map<std::string, std::string> aliases;
  /// Checkpoint names that may be present without being used, e.g. a redundant "lm_head.weight" of a tied model.
  std::vector<std::string> ignorable;
  /// A prefix that some checkpoints leave out, e.g. "model.".
  std::string optional_prefix;
  /// Added to the error of a missing name, e.g. {"lm_head.weight", "tie_word_embeddings=false"}.
  std::map<std::string, std::string> hints;
};

/// Called while loading with the bytes copied so far and in all.
using LoadProgress = std::function<void(int64_t bytes_done, int64_t bytes_total)>;

/// What loading did on this rank.
struct LoadReport {
  int64_t bytes_read = 0;               ///< tensor bytes read, in the files' dtypes
  std::vector<std::string> unexpected;  ///< checkpoint names that no parameter used
};

/// Copies exactly the bytes of this rank's slices from a checkpoint into allotted parameters, converting the dtype
/// where it differs. Sections may be separate or fused on disk. Tensors on a CUDA device are filled through the host.
class WeightLoader {
 public:
  WeightLoader(const CheckpointIndex& index, CheckpointNames names);

  /// Checks that every parameter has its data, with the right shape, before it copies any. Throws CheckpointError
  /// that lists missing and mis-shaped names together (up to ten each, with counts). Unexpected names that are not
  /// ignorable are an error as well.
  LoadReport load(const std::vector<NamedParameter>& parameters, const LoadProgress& progress = {}) const;

 private:
  const CheckpointIndex& index_;
  CheckpointNames names_;
};

/// Copies one section from a full tensor in memory into an allotted parameter: what `load` does, for tests and for
/// callers that hold the full weights. Section "" stands for the whole tensor; of a parameter with several sections,
/// for a tensor in which they are fused. Throws ArgumentError on an unknown section or a wrong shape.
void load_section(Parameter& parameter, const at::Tensor& full, const std::string& section = "");

}  // namespace headway
