#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headway/layers/module.h"
#include "headway/spmd/device_mesh.h"

// Sharding of a model that was built and loaded for one rank: modules are replaced by ones whose weights are cut over
// a mesh and which take and return global tensors, so that the model's own code stays as it is.
namespace headway {

/// Modules that were replaced so far, by the parameter that they held: what keeps tied weights tied.
using ReplacedModules = std::map<const Parameter*, std::shared_ptr<Module>>;

using WrappingFunction = std::function<std::shared_ptr<Module>(const std::shared_ptr<Module>& original,
                                                               const DeviceMesh& mesh, ReplacedModules& replaced)>;

/// One row of the table that shard_model goes through; the first row that matches a module replaces it.
struct ModuleWrapping {
  std::string type_name;
  std::function<bool(const Module&)> matches;  ///< true for the type and its subclasses
  WrappingFunction wrap;
};

/// The table, in its order: QKV, merged column, column, row, embedding, LM head. Users may add rows of their own.
std::vector<ModuleWrapping>& module_type_to_wrapping_func();

/// The class name of a module, without its namespace.
std::string get_fqn(const Module& module);

/// @{ Rows of the table. Weights are cut over axis "x": column layers in the first dimension, row layers in the second.
std::shared_ptr<Module> partition_qkv_parallel_linear(const std::shared_ptr<Module>& original, const DeviceMesh& mesh,
                                                      ReplacedModules& replaced);
std::shared_ptr<Module> partition_column_parallel_linear(const std::shared_ptr<Module>& original,
                                                         const DeviceMesh& mesh, ReplacedModules& replaced);
std::shared_ptr<Module> partition_row_parallel_linear(const std::shared_ptr<Module>& original, const DeviceMesh& mesh,
                                                      ReplacedModules& replaced);
std::shared_ptr<Module> partition_vocab_parallel_embedding(const std::shared_ptr<Module>& original,
                                                           const DeviceMesh& mesh, ReplacedModules& replaced);
std::shared_ptr<Module> partition_parallel_lm_head(const std::shared_ptr<Module>& original, const DeviceMesh& mesh,
                                                   ReplacedModules& replaced);
/// @}

/// What became of one module that has parameters.
struct ShardedModule {
  std::string name;
  std::string type;
  bool sharded = false;     ///< else replicated
  std::string spec;         ///< of its weight, e.g. "(x, None)"
  int64_t local_bytes = 0;  ///< a shared parameter counts at its first module
  int64_t global_bytes = 0;
};

/// @{ Of one parameter of a sharded module: how its slices cut it over the mesh; the bytes of all of it.
std::string spec_of(const Parameter& parameter);
int64_t global_bytes(const Parameter& parameter);
/// @}

/// Replaces the modules below `model` by the table and reports every module that has parameters. Each replacement is
/// logged at debug level. The mesh must outlive the model. Throws ConfigError "Top Level module is not expected to be
/// wrapped." if the table matches `model` itself.
std::vector<ShardedModule> shard_model(Module& model, const DeviceMesh& mesh);

}  // namespace headway
