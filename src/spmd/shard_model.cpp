#include "headway/spmd/shard_model.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <set>
#include <typeinfo>

#include "headway/base/error.h"
#include "headway/base/log.h"
#include "headway/layers/linear.h"
#include "headway/layers/vocab_parallel_embedding.h"

namespace headway {
namespace {

template <typename T>
ModuleWrapping row_for(std::string type_name, WrappingFunction wrap) {
  return {std::move(type_name), [](const Module& module) { return dynamic_cast<const T*>(&module) != nullptr; },
          std::move(wrap)};
}

const ModuleWrapping* find_wrapping(const Module& module) {
  for (const ModuleWrapping& row : module_type_to_wrapping_func()) {
    if (row.matches(module)) return &row;
  }
  return nullptr;
}

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

class Sharding {
 public:
  explicit Sharding(const DeviceMesh& mesh) : mesh_(mesh) {}

  void replace_below(Module& parent, const std::string& prefix) {
    for (size_t i = 0; i < parent.children().size(); ++i) {
      const Module::Child child = parent.children()[i];  // a copy: replacing changes the list's entry
      const std::string name = joined(prefix, child.name);
      const ModuleWrapping* wrapping = find_wrapping(*child.module);
      if (wrapping == nullptr) {
        replace_below(*child.module, name);
        continue;
      }
      log(LogLevel::debug, fmt::format("shard_model: {} matches {}", name, wrapping->type_name));
      auto replacement = wrapping->wrap(child.module, mesh_, replaced_);
      for (const auto& parameter : child.module->own_parameters()) replaced_.emplace(parameter.get(), replacement);
      log(LogLevel::debug, fmt::format("shard_model: {} is replaced by a {}", name, get_fqn(*replacement)));
      parent.replace_child(child.name, replacement);
      originals_.push_back(child.module);  // keeps its parameters' addresses, the keys above, from being used again
      sharded_.insert(name);
    }
  }

  std::vector<ShardedModule> report(Module& model) const {
    std::vector<ShardedModule> rows;
    std::set<const Parameter*> counted;
    for (const auto& [name, module] : model.named_modules()) {
      if (module->own_parameters().empty()) continue;
      ShardedModule row{name, get_fqn(*module), sharded_.contains(name), "", 0, 0};
      if (row.sharded) row.spec = spec_of(*module->own_parameters().front());
      for (const auto& parameter : module->own_parameters()) {
        if (!counted.insert(parameter.get()).second) continue;
        row.local_bytes += static_cast<int64_t>(parameter->tensor.nbytes());
        row.global_bytes += global_bytes(*parameter);
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  const DeviceMesh& mesh_;
  ReplacedModules replaced_;
  std::vector<std::shared_ptr<Module>> originals_;
  std::set<std::string> sharded_;
};

}  // namespace

std::vector<ModuleWrapping>& module_type_to_wrapping_func() {
  static std::vector<ModuleWrapping> table{
      row_for<QKVParallelLinear>("QKVParallelLinear", partition_qkv_parallel_linear),
      row_for<MergedColumnParallelLinear>("MergedColumnParallelLinear", partition_column_parallel_linear),
      row_for<ColumnParallelLinear>("ColumnParallelLinear", partition_column_parallel_linear),
      row_for<RowParallelLinear>("RowParallelLinear", partition_row_parallel_linear),
      row_for<VocabParallelEmbedding>("VocabParallelEmbedding", partition_vocab_parallel_embedding),
      row_for<ParallelLMHead>("ParallelLMHead", partition_parallel_lm_head)};
  return table;
}

std::string get_fqn(const Module& module) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(typeid(module).name(), nullptr, nullptr, &status), &std::free);
  const std::string full = status == 0 ? demangled.get() : typeid(module).name();
  const size_t colons = full.rfind("::");
  return colons == std::string::npos ? full : full.substr(colons + 2);
}

std::string spec_of(const Parameter& parameter) {
  PartitionSpec spec(parameter.shape.size());
  const TensorSlice& slice = parameter.slices.front();
  if (!spec.empty()) spec[slice.dim] = {"x"};
  return to_string(spec);
}

int64_t global_bytes(const Parameter& parameter) {
  int64_t elements = 0;
  for (const TensorSlice& slice : parameter.slices) {
    int64_t section = 1;
    for (int64_t size : slice.total_shape) section *= size;
    elements += section;
  }
  return elements * parameter.tensor.element_size();
}

std::vector<ShardedModule> shard_model(Module& model, const DeviceMesh& mesh) {
  if (find_wrapping(model) != nullptr) throw ConfigError("Top Level module is not expected to be wrapped.");
  Sharding sharding(mesh);
  sharding.replace_below(model, "");
  return sharding.report(model);
}

}  // namespace headway
