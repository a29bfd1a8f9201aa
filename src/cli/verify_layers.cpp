#include "cli/verify_layers.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <fmt/format.h>

#include <cmath>

#include "cli/verify_trace.h"

namespace headway {
namespace {

constexpr double kTiny = 1e-30;  // keeps the quotient of two zero vectors at 0

LayerPart part_of(ResidualPoint point) {
  if (point == ResidualPoint::embedding) return LayerPart::embedding;
  return point == ResidualPoint::attention ? LayerPart::attention : LayerPart::mlp;
}

std::string stream_name(ResidualPoint point, int64_t layer) {
  return fmt::format("{}.{}", layer, name_of(part_of(point)));
}

std::string cache_name(int64_t layer, const char* which) {
  return fmt::format("{}.{}", layer, which);
}

at::Tensor on_host(const at::Tensor& tensor) {
  return tensor.to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true);
}

at::Tensor lengths(const at::Tensor& vectors) {
  return at::linalg_vector_norm(vectors, 2, at::IntArrayRef{-1});
}

/// Per vector: the length of the difference by that of the expected one.
at::Tensor relative_difference(const at::Tensor& actual, const at::Tensor& expected) {
  return lengths(actual.sub(expected)).div(lengths(expected).clamp_min(kTiny));
}

/// NaN counts as larger than any number.
void keep_larger(double& largest, double value) {
  if (std::isnan(value) || value > largest) largest = value;
}

}  // namespace

void LayerRecorder::see(ResidualPoint point, int64_t layer, const at::Tensor& stream) {
  chunks_[stream_name(point, layer)].push_back(on_host(stream));
}

void LayerRecorder::write(const std::filesystem::path& path, const TeacherForcing& sequence, int64_t layers) const {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& [name, chunks] : chunks_) tensors.emplace_back(name, at::cat(chunks));
  for (int64_t layer = 0; layer < layers; ++layer) {
    tensors.emplace_back(cache_name(layer, "keys"), on_host(sequence.keys(layer)));
    tensors.emplace_back(cache_name(layer, "values"), on_host(sequence.values(layer)));
  }
  std::vector<SafetensorsWriter::Announced> announced;
  for (const auto& [name, tensor] : tensors) announced.push_back({name, DType::F32, tensor.sizes().vec()});
  SafetensorsWriter writer(path, announced);
  for (const auto& [name, tensor] : tensors) writer.append(tensor);
  writer.finish();
}

void LayerComparison::begin_prompt(const std::filesystem::path& path) {
  file_.emplace(path);
  first_row_ = 0;
}

void LayerComparison::see(ResidualPoint point, int64_t layer, const at::Tensor& stream) {
  const at::Tensor expected = float_tensor(*file_, stream_name(point, layer)).narrow(0, first_row_, stream.size(0));
  const at::Tensor relative = relative_difference(on_host(stream), expected);
  keep_larger(largest_[{layer, part_of(point)}][0], relative.max().item<double>());
}

void LayerComparison::see_cache(const TeacherForcing& sequence, int64_t layers) {
  for (int64_t layer = 0; layer < layers; ++layer) {
    compare_heads(layer, sequence.keys(layer), cache_name(layer, "keys"));
    compare_heads(layer, sequence.values(layer), cache_name(layer, "values"));
  }
}

void LayerComparison::compare_heads(int64_t layer, const at::Tensor& actual, const std::string& name) {
  const Range held = heads_.kv_heads;
  const at::Tensor expected = float_tensor(*file_, name).narrow(1, held.begin, held.size());
  const at::Tensor relative = relative_difference(on_host(actual), expected).amax(0);  // [local_kv_heads]
  for (int64_t head = 0; head < held.size(); ++head) {
    keep_larger(largest_[{layer, LayerPart::keys_and_values}][held.begin + head], relative[head].item<double>());
  }
}

std::optional<Deviation> LayerComparison::first_above(double bound) const {
  for (const auto& [place, by_head] : largest_) {
    Deviation deviation{place.first, place.second, 0, {}};
    bool above = false;
    for (const auto& [head, relative] : by_head) {
      keep_larger(deviation.relative, relative);
      if (relative <= bound) continue;  // never true for NaN
      above = true;
      if (place.second == LayerPart::keys_and_values) deviation.kv_heads.push_back(head);
    }
    if (above) return deviation;
  }
  return std::nullopt;
}

}  // namespace headway
