#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bindings.h"
#include "headway/base/error.h"
#include "headway/layers/attn_linear.h"
#include "headway/layers/linear.h"
#include "headway/layers/vocab_parallel_embedding.h"
#include "headway/spmd/shard_model.h"
#include "headway/weights/weight_loader.h"

namespace headway {
namespace {

using KeepsGroup = py::keep_alive<1, 2>;  // a layer keeps the group or the state that it was built over

template <typename T, typename Base>
using Layer = py::class_<T, Base, std::shared_ptr<T>>;

std::vector<std::string> parameter_names(const Module& module) {
  std::vector<std::string> names;
  for (const auto& parameter : module.own_parameters()) names.push_back(parameter->name);
  return names;
}

/// Makes `tensor`, the very object that Python holds, the layer's parameter.
void set_parameter(Module& module, const std::string& name, const at::Tensor& tensor) {
  Parameter& parameter = module.own_parameter(name);
  if (tensor.sizes() != at::IntArrayRef(parameter.shape) || !tensor.is_contiguous()) {
    throw ArgumentError(fmt::format("parameter {} is a contiguous tensor of [{}], not one of [{}]", name,
                                    fmt::join(parameter.shape, ", "), fmt::join(tensor.sizes(), ", ")));
  }
  parameter.tensor = tensor;
}

std::pair<at::Tensor, at::Tensor> forward_linear(const Linear& layer, const at::Tensor& input) {
  const c10::NoGradGuard no_gradients;
  const LinearOutput output = layer.forward(input);
  return {output.output, output.bias};
}

template <typename T>
at::Tensor forward_vocab(const T& layer, const at::Tensor& input) {
  const c10::NoGradGuard no_gradients;
  return layer.forward(input);
}

std::pair<int64_t, int64_t> as_pair(Range range) {
  return {range.begin, range.end};
}

void bind_module(py::module_& module) {
  py::class_<Module, std::shared_ptr<Module>>(module, "Module")
      .def_property_readonly("type_name", get_fqn)
      .def("parameter_names", parameter_names)
      .def("parameter", [](const Module& layer, const std::string& name) { return layer.own_parameter(name).tensor; })
      .def("set_parameter", set_parameter)
      .def(
          "load_section",
          [](const Module& layer, const std::string& name, const at::Tensor& full, const std::string& section) {
            const c10::NoGradGuard no_gradients;
            load_section(layer.own_parameter(name), full, section);
          },
          ReleaseGil())
      .def("partition_spec",
           [](const Module& layer, const std::string& name) { return spec_of(layer.own_parameter(name)); })
      .def("global_bytes",
           [](const Module& layer, const std::string& name) { return global_bytes(layer.own_parameter(name)); })
      .def(
          "allocate",
          [](Module& layer, at::ScalarType dtype, const at::Device& device) {
            allocate_parameters(layer, dtype, device);
          },
          ReleaseGil());
  Layer<Linear, Module>(module, "Linear").def("forward", forward_linear, ReleaseGil());
}

void bind_column_layers(py::module_& module) {
  py::class_<ColumnOptions>(module, "ColumnOptions")
      .def(py::init([](bool bias, bool skip_bias_add, bool gather_output) {
        return ColumnOptions{.bias = bias, .skip_bias_add = skip_bias_add, .gather_output = gather_output};
      }));
  py::class_<HeadPartition>(module, "HeadPartition")
      .def_property_readonly("q_heads", [](const HeadPartition& heads) { return as_pair(heads.q_heads); })
      .def_property_readonly("kv_heads", [](const HeadPartition& heads) { return as_pair(heads.kv_heads); });
  py::class_<QKVShape>(module, "QKVShape").def(py::init([](int64_t hidden, int64_t head_dim, int64_t q, int64_t kv) {
    return QKVShape{hidden, head_dim, {q, kv}};
  }));
  Layer<ColumnParallelLinear, Linear>(module, "ColumnParallelLinear")
      .def(py::init<const GroupCoordinator&, int64_t, int64_t, ColumnOptions>(), KeepsGroup());
  Layer<MergedColumnParallelLinear, ColumnParallelLinear>(module, "MergedColumnParallelLinear")
      .def(py::init([](const GroupCoordinator& group, int64_t in_features, const std::vector<int64_t>& sizes,
                       const ColumnOptions& options) {
             std::vector<MergedColumnParallelLinear::Output> outputs;
             for (const int64_t size : sizes) outputs.push_back({std::to_string(outputs.size()), size});
             return std::make_shared<MergedColumnParallelLinear>(group, in_features, outputs, options);
           }),
           KeepsGroup());
  Layer<QKVParallelLinear, ColumnParallelLinear>(module, "QKVParallelLinear")
      .def(py::init<const GroupCoordinator&, QKVShape, ColumnOptions>(), KeepsGroup())
      .def_property_readonly("heads", &QKVParallelLinear::heads);
  Layer<AttnColumnParallelLinear, ColumnParallelLinear>(module, "AttnColumnParallelLinear")
      .def(py::init<const ParallelState&, int64_t, int64_t, ColumnOptions>(), KeepsGroup());
  Layer<AttnQKVParallelLinear, QKVParallelLinear>(module, "AttnQKVParallelLinear")
      .def(py::init<const ParallelState&, QKVShape, ColumnOptions>(), KeepsGroup());
}

void bind_row_layers(py::module_& module) {
  py::class_<RowShape>(module, "RowShape").def(py::init([](int64_t in, int64_t out, int64_t total_q_heads) {
    return RowShape{in, out, total_q_heads};
  }));
  py::class_<RowOptions>(module, "RowOptions")
      .def(py::init([](bool bias, bool skip_bias_add, bool input_is_parallel, bool reduce_results) {
        return RowOptions{.bias = bias,
                          .skip_bias_add = skip_bias_add,
                          .input_is_parallel = input_is_parallel,
                          .reduce_results = reduce_results};
      }));
  Layer<ReplicatedLinear, Linear>(module, "ReplicatedLinear")
      .def(py::init([](int64_t in, int64_t out, bool bias, bool skip_bias_add) {
        return std::make_shared<ReplicatedLinear>(in, out,
                                                  ReplicatedOptions{.bias = bias, .skip_bias_add = skip_bias_add});
      }));
  Layer<RowParallelLinear, Linear>(module, "RowParallelLinear")
      .def(py::init<const GroupCoordinator&, RowShape, RowOptions>(), KeepsGroup())
      .def_property_readonly("local_columns",
                             [](const RowParallelLinear& layer) { return as_pair(layer.local_columns()); });
  Layer<AttnRowParallelLinear, RowParallelLinear>(module, "AttnRowParallelLinear")
      .def(py::init<const ParallelState&, RowShape, RowOptions>(), KeepsGroup());
}

void bind_vocab_layers(py::module_& module) {
  Layer<VocabParallelEmbedding, Module>(module, "VocabParallelEmbedding")
      .def(py::init<const GroupCoordinator&, int64_t, int64_t>(), KeepsGroup())
      .def_property_readonly("local_rows",
                             [](const VocabParallelEmbedding& layer) { return as_pair(layer.local_rows()); })
      .def("forward", forward_vocab<VocabParallelEmbedding>, ReleaseGil());
  Layer<ParallelLMHead, Module>(module, "ParallelLMHead")
      .def(py::init<const GroupCoordinator&, int64_t, int64_t>(), KeepsGroup())
      .def(py::init<const VocabParallelEmbedding&>(), KeepsGroup())
      .def_property_readonly("local_rows", [](const ParallelLMHead& layer) { return as_pair(layer.local_rows()); })
      .def("forward", forward_vocab<ParallelLMHead>, ReleaseGil());
}

}  // namespace

void bind_layers(py::module_& module) {
  bind_module(module);
  bind_column_layers(module);
  bind_row_layers(module);
  bind_vocab_layers(module);
}

}  // namespace headway
