#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/teacher_forcing.h"
#include "cli/verify_job.h"
#include "headway/models/causal_lm.h"
#include "headway/weights/safetensors_file.h"

// What lies between a prompt and its logits, layer by layer: the residual stream, the same on every rank, and the keys
// and values of the heads that a rank holds.
namespace headway {

/// Keeps the states of one prompt and writes them to a file.
class LayerRecorder {
 public:
  void see(ResidualPoint point, int64_t layer, const at::Tensor& stream);
  void write(const std::filesystem::path& path, const TeacherForcing& sequence, int64_t layers) const;

 private:
  std::map<std::string, std::vector<at::Tensor>> chunks_;
};

/// Compares the states of this rank with those of a file, one prompt after another, and keeps the largest differences.
class LayerComparison {
 public:
  explicit LayerComparison(HeadPartition heads) : heads_(heads) {}

  void begin_prompt(const std::filesystem::path& path);
  void begin_chunk(int64_t first_row) { first_row_ = first_row; }
  void see(ResidualPoint point, int64_t layer, const at::Tensor& stream);
  void see_cache(const TeacherForcing& sequence, int64_t layers);

  /// The first place, in the order of computation, where a difference exceeds `bound`.
  std::optional<Deviation> first_above(double bound) const;

 private:
  using Place = std::pair<int64_t, LayerPart>;  // layer and part: sorts in the order of computation

  void compare_heads(int64_t layer, const at::Tensor& actual, const std::string& name);

  HeadPartition heads_;
  std::optional<SafetensorsFile> file_;
  int64_t first_row_ = 0;
  std::map<Place, std::map<int64_t, double>> largest_;  ///< by KV head; 0 where there is no head to tell apart
};

}  // namespace headway
