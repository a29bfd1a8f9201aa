#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "bindings.h"
#include "headway/base/log.h"
#include "headway/kernels/threads.h"
#include "headway/parallel/cuda_devices.h"
#include "headway/parallel/parallel_state.h"
#include "parallel/launch/launch_variables.h"

namespace headway {
namespace {

using Group = std::shared_ptr<GroupCoordinator>;
using State = std::shared_ptr<ParallelState>;
using Sizes = std::vector<int64_t>;
using Variables = std::map<std::string, std::string>;

LaunchEnvironment resolve_launch(const std::optional<Variables>& variables) {
  if (!variables) return resolve_launch_environment();
  return resolve_launch_environment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables->find(name);
    return found == variables->end() ? std::nullopt : std::optional(found->second);
  });
}

Variables launch_variables_of_child(int rank, int world_size, const std::string& store_file) {
  Variables variables;
  for (auto& [name, value] : child_launch_variables({rank}, world_size, store_file)) variables.emplace(name, value);
  return variables;
}

DistributedOptions options_of(const std::string& device, const std::string& backend, double timeout) {
  const bool cuda = device == "cuda" || (device == "auto" && backend != "gloo" && visible_cuda_devices() > 0);
  DistributedOptions options;
  options.device = cuda ? Device::cuda : Device::cpu;
  options.backend = backend;
  options.timeout = std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(timeout));
  options.rendezvous_timeout = options.timeout;
  return options;
}

/// pybind11 has no holders of constant objects; nothing of a group or a state can be changed from Python.
State shared_state() {
  return std::const_pointer_cast<ParallelState>(share_parallel_state());
}

/// A group for Python: it keeps the state alive that it is part of.
Group part_of(const State& state, const GroupCoordinator& group) {
  return {state, const_cast<GroupCoordinator*>(&group)};
}

std::vector<int> numbers_of(const RankList& ranks) {
  std::vector<int> numbers;
  for (const GlobalRank rank : ranks) numbers.push_back(rank.value);
  return numbers;
}

/// Sums a copy, so that the caller's tensor stays as it is.
at::Tensor all_reduce(const GroupCoordinator& group, const at::Tensor& input) {
  return group.size() == 1 ? input : group.all_reduce(input.clone(at::MemoryFormat::Contiguous));
}

void bind_launch(py::module_& module) {
  py::class_<LaunchEnvironment>(module, "LaunchEnvironment")
      .def_property_readonly("rank", [](const LaunchEnvironment& launch) { return launch.rank.value; })
      .def_readonly("world_size", &LaunchEnvironment::world_size)
      .def_readonly("local_rank", &LaunchEnvironment::local_rank)
      .def_readonly("local_world_size", &LaunchEnvironment::local_world_size)
      .def_readonly("source", &LaunchEnvironment::source);
  module.def("resolve_launch_environment", resolve_launch, py::arg("variables") = py::none());
  module.def("child_launch_variables", launch_variables_of_child);
  module.def("set_log_rank", set_log_rank);
  module.def("log_debug", [](const std::string& message) { log(LogLevel::debug, message); });
  module.def("set_num_threads", kernels::set_num_threads);
  module.def("pin_calling_thread", kernels::pin_calling_thread);
}

void bind_group(py::module_& module) {
  py::class_<GroupCoordinator, Group>(module, "GroupCoordinator", py::release_gil_before_calling_cpp_dtor())
      .def_property_readonly("name", &GroupCoordinator::name)
      .def_property_readonly("ranks", [](const GroupCoordinator& group) { return numbers_of(group.ranks()); })
      .def_property_readonly("rank", [](const GroupCoordinator& group) { return group.global_rank().value; })
      .def_property_readonly("rank_in_group", [](const GroupCoordinator& group) { return group.rank().value; })
      .def_property_readonly("backend_name", &GroupCoordinator::backend_name)
      .def("all_reduce", all_reduce, ReleaseGil())
      .def("all_gather", &GroupCoordinator::all_gather, py::arg("input"), py::arg("dim"), py::arg("sizes") = Sizes(),
           ReleaseGil())
      .def("reduce_scatter", &GroupCoordinator::reduce_scatter, py::arg("input"), py::arg("dim"),
           py::arg("sizes") = Sizes(), ReleaseGil())
      .def("all_to_all", &GroupCoordinator::all_to_all, ReleaseGil())
      .def(
          "gather",
          [](const GroupCoordinator& group, const at::Tensor& input, int destination, int64_t dim, const Sizes& sizes) {
            return group.gather(input, dim, {destination}, sizes);
          },
          ReleaseGil())
      .def(
          "broadcast",
          [](const GroupCoordinator& group, const at::Tensor& tensor, int source) {
            return group.broadcast(tensor, {source});
          },
          ReleaseGil())
      .def("broadcast_bytes",
           [](const GroupCoordinator& group, const std::string& bytes, int source) {
             std::string received;
             {
               const py::gil_scoped_release release;
               received = group.broadcast_object(bytes, {source});
             }
             return py::bytes(received);
           })
      .def(
          "broadcast_tensor_dict",
          [](const GroupCoordinator& group, const std::map<std::string, at::Tensor>& tensors, int source) {
            return group.broadcast_tensor_dict(tensors, {source});
          },
          ReleaseGil())
      .def(
          "send",
          [](const GroupCoordinator& group, const at::Tensor& tensor, int destination, int tag) {
            group.send(tensor, {destination}, tag);
          },
          ReleaseGil())
      .def(
          "recv",
          [](const GroupCoordinator& group, const at::Tensor& tensor, int source, int tag) {
            return group.recv(tensor, {source}, tag);
          },
          ReleaseGil())
      .def("barrier", &GroupCoordinator::barrier, ReleaseGil());
}

void bind_state(py::module_& module) {
  py::class_<ParallelState, State>(module, "ParallelState", py::release_gil_before_calling_cpp_dtor())
      .def_static(
          "create",
          [](const LaunchEnvironment& launch, int tp, int attn_tp, const std::string& device, double timeout,
             const std::string& settings) {
            return State(ParallelState::create(launch, tp, attn_tp, options_of(device, "auto", timeout), settings));
          },
          ReleaseGil())
      .def_property_readonly("world", [](const State& state) { return part_of(state, state->world()); })
      .def_property_readonly("tp", [](const State& state) { return part_of(state, state->tp()); })
      .def_property_readonly("lm_head_tp", [](const State& state) { return part_of(state, state->lm_head_tp()); })
      .def_property_readonly("attn_dp", [](const State& state) { return part_of(state, state->attn_dp()); })
      .def_property_readonly("self_group", [](const State& state) { return part_of(state, state->self()); })
      .def_property_readonly("device", [](const State& state) { return state->device(); });
}

void bind_process_wide(py::module_& module) {
  module.def(
      "init_distributed_environment",
      [](const LaunchEnvironment& launch, const std::string& device, const std::string& backend, double timeout) {
        init_distributed_environment(launch, options_of(device, backend, timeout));
      },
      ReleaseGil());
  module.def("initialize_model_parallel", initialize_model_parallel, ReleaseGil());
  module.def("ensure_model_parallel_initialized", ensure_model_parallel_initialized, ReleaseGil());
  module.def("model_parallel_is_initialized", model_parallel_is_initialized);
  module.def("destroy_model_parallel", destroy_model_parallel, ReleaseGil());
  module.def("destroy_distributed_environment", destroy_distributed_environment, ReleaseGil());
  module.def("get_parallel_state", shared_state);
  module.def("get_world_group", [] { return std::const_pointer_cast<GroupCoordinator>(share_world_group()); });
  module.def("get_tp_group", [] {
    const GroupCoordinator& group = get_tp_group();
    return part_of(shared_state(), group);
  });
  module.def("get_lm_tp_group", [] {
    const GroupCoordinator& group = get_lm_tp_group();
    return part_of(shared_state(), group);
  });
}

}  // namespace

void bind_distributed(py::module_& module) {
  bind_launch(module);
  bind_group(module);
  bind_state(module);
  bind_process_wide(module);
}

}  // namespace headway
