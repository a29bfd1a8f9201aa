#include <memory>
#include <string>
#include <vector>

#include "bindings.h"
#include "headway/layers/vocab_parallel_embedding.h"
#include "headway/parallel/parallel_state.h"
#include "headway/spmd/device_mesh.h"
#include "headway/spmd/shard_model.h"
#include "headway/spmd/sharded_tensor.h"
#include "headway/spmd/spmd_qkv_linear.h"

namespace headway {
namespace {

using ModulePointer = std::shared_ptr<Module>;
using KeepsMesh = py::keep_alive<0, 2>;  // what is sharded over a mesh keeps its groups

template <ModulePointer (*partition)(const ModulePointer&, const DeviceMesh&, ReplacedModules&)>
ModulePointer partition_alone(const ModulePointer& original, const DeviceMesh& mesh) {
  ReplacedModules none;
  return partition(original, mesh, none);
}

/// `embedding` is what became of the embedding that the head is tied to.
ModulePointer partition_tied_lm_head(const ModulePointer& original, const DeviceMesh& mesh,
                                     const ModulePointer& embedding) {
  ReplacedModules replaced{{original->own_parameters().front().get(), embedding}};
  return partition_parallel_lm_head(original, mesh, replaced);
}

void bind_mesh(py::module_& module) {
  py::class_<DeviceMesh, std::shared_ptr<DeviceMesh>>(module, "DeviceMesh", py::release_gil_before_calling_cpp_dtor())
      .def(py::init<const ParallelState&, std::vector<int>, std::vector<std::string>>(), py::keep_alive<1, 2>())
      .def_property_readonly("sizes", [](const DeviceMesh& mesh) { return mesh.shape().sizes; })
      .def_property_readonly("axis_names", [](const DeviceMesh& mesh) { return mesh.shape().axis_names; })
      .def("contains_self", &DeviceMesh::contains_self)
      .def("coordinates", &DeviceMesh::coordinates)
      .def(
          "group",
          [](const std::shared_ptr<DeviceMesh>& mesh, const MeshAxes& axes) {
            return std::shared_ptr<GroupCoordinator>(mesh, const_cast<GroupCoordinator*>(&mesh->group(axes)));
          },
          ReleaseGil());
  py::class_<ShardedTensor>(module, "ShardedTensor")
      .def_property_readonly("global_shape", &ShardedTensor::global_shape)
      .def_property_readonly("spec", &ShardedTensor::spec)
      .def_property_readonly("local", &ShardedTensor::local)
      .def_property_readonly("offsets", &ShardedTensor::offsets)
      .def("full_tensor", &ShardedTensor::full_tensor, ReleaseGil());
  module.def("mark_sharding", mark_sharding, KeepsMesh(), ReleaseGil());
}

void bind_partitions(py::module_& module) {
  py::class_<SpmdQKVParallelLinear, Linear, std::shared_ptr<SpmdQKVParallelLinear>>(module, "SpmdQKVParallelLinear")
      .def(py::init<const QKVParallelLinear&, const DeviceMesh*>(), py::keep_alive<1, 3>(), ReleaseGil());
  module.def("partition_column_parallel_linear", partition_alone<partition_column_parallel_linear>, KeepsMesh(),
             ReleaseGil());
  module.def("partition_row_parallel_linear", partition_alone<partition_row_parallel_linear>, KeepsMesh(),
             ReleaseGil());
  module.def("partition_vocab_parallel_embedding", partition_alone<partition_vocab_parallel_embedding>, KeepsMesh(),
             ReleaseGil());
  module.def("partition_parallel_lm_head", partition_alone<partition_parallel_lm_head>, KeepsMesh(), ReleaseGil());
  module.def("partition_tied_lm_head", partition_tied_lm_head, KeepsMesh(), ReleaseGil());
}

}  // namespace

void bind_spmd(py::module_& module) {
  bind_mesh(module);
  bind_partitions(module);
}

}  // namespace headway
