#include "headway/base/error.h"
#include "headway/layers/linear.h"
#include "headway/layers/vocab_parallel_embedding.h"
#include "headway/spmd/shard_model.h"
#include "headway/spmd/spmd_qkv_linear.h"
#include "spmd/adopt_weights.h"

namespace headway {
namespace {

template <typename T>
const T& as(const std::shared_ptr<Module>& module) {
  const auto* typed = dynamic_cast<const T*>(module.get());
  if (typed == nullptr) throw ArgumentError("the module to be partitioned has another type: " + get_fqn(*module));
  return *typed;
}

/// As a T whose weights are whole.
template <typename T>
const T& whole(const std::shared_ptr<Module>& module) {
  const T& typed = as<T>(module);
  require_whole(typed.group());
  return typed;
}

const GroupCoordinator& sharding_group(const DeviceMesh& mesh) {
  return mesh.group({"x"});
}

/// Column layers under a mesh return all columns, so that what follows sees the unsharded output.
ColumnOptions gathered(ColumnOptions options) {
  options.gather_output = true;
  return options;
}

/// Row layers under a mesh take all columns and return the sum.
RowOptions from_global_input(RowOptions options) {
  options.input_is_parallel = false;
  options.reduce_results = true;
  return options;
}

std::shared_ptr<ColumnParallelLinear> sharded_column(const ColumnParallelLinear& original,
                                                     const GroupCoordinator& group) {
  const ColumnOptions options = gathered(original.options());
  const auto& sections = original.sections();
  if (sections.size() == 1) {
    return std::make_shared<ColumnParallelLinear>(group, original.in_features(), sections.front().total, options);
  }
  std::vector<MergedColumnParallelLinear::Output> outputs;
  for (const OutputSection& section : sections) outputs.push_back({section.name, section.total});
  return std::make_shared<MergedColumnParallelLinear>(group, original.in_features(), outputs, options);
}

}  // namespace

std::shared_ptr<Module> partition_qkv_parallel_linear(const std::shared_ptr<Module>& original, const DeviceMesh& mesh,
                                                      ReplacedModules& replaced) {
  return std::make_shared<SpmdQKVParallelLinear>(as<QKVParallelLinear>(original), &mesh);
}

std::shared_ptr<Module> partition_column_parallel_linear(const std::shared_ptr<Module>& original,
                                                         const DeviceMesh& mesh, ReplacedModules& replaced) {
  auto sharded = sharded_column(whole<ColumnParallelLinear>(original), sharding_group(mesh));
  adopt_weights(*sharded, *original);
  return sharded;
}

std::shared_ptr<Module> partition_row_parallel_linear(const std::shared_ptr<Module>& original, const DeviceMesh& mesh,
                                                      ReplacedModules& replaced) {
  const auto& row = whole<RowParallelLinear>(original);
  auto sharded =
      std::make_shared<RowParallelLinear>(sharding_group(mesh), row.shape(), from_global_input(row.options()));
  adopt_weights(*sharded, row);
  return sharded;
}

std::shared_ptr<Module> partition_vocab_parallel_embedding(const std::shared_ptr<Module>& original,
                                                           const DeviceMesh& mesh, ReplacedModules& replaced) {
  const auto& shape = whole<VocabParallelEmbedding>(original).weight()->shape;
  auto sharded = std::make_shared<VocabParallelEmbedding>(sharding_group(mesh), shape[0], shape[1]);
  adopt_weights(*sharded, *original);
  return sharded;
}

std::shared_ptr<Module> partition_parallel_lm_head(const std::shared_ptr<Module>& original, const DeviceMesh& mesh,
                                                   ReplacedModules& replaced) {
  const auto& weight = whole<ParallelLMHead>(original).own_parameters().front();
  const auto tied = replaced.find(weight.get());
  if (tied != replaced.end()) return std::make_shared<ParallelLMHead>(as<VocabParallelEmbedding>(tied->second));
  auto sharded = std::make_shared<ParallelLMHead>(sharding_group(mesh), weight->shape[0], weight->shape[1]);
  adopt_weights(*sharded, *original);
  return sharded;
}

}  // namespace headway
