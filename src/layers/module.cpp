#include "headway/layers/module.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>

#include "headway/weights/weight_arena.h"

namespace headway {
namespace {

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

}  // namespace

Module::~Module() = default;

Parameter& Module::own_parameter(const std::string& name) const {
  for (const auto& parameter : parameters_) {
    if (parameter->name == name) return *parameter;
  }
  throw ArgumentError(fmt::format("the module has no parameter \"{}\"", name));
}

std::vector<NamedParameter> Module::named_parameters(const std::string& prefix) const {
  std::vector<NamedParameter> found;
  collect_parameters(prefix, found);
  return found;
}

void Module::collect_parameters(const std::string& prefix, std::vector<NamedParameter>& found) const {
  for (const auto& parameter : parameters_) {
    const bool seen =
        std::any_of(found.begin(), found.end(), [&](const auto& named) { return named.parameter == parameter; });
    if (!seen) found.push_back({joined(prefix, parameter->name), parameter});
  }
  for (const Child& child : children_) child.module->collect_parameters(joined(prefix, child.name), found);
}

std::vector<std::pair<std::string, Module*>> Module::named_modules(const std::string& prefix) {
  std::vector<std::pair<std::string, Module*>> found{{prefix, this}};
  for (const Child& child : children_) {
    for (auto& entry : child.module->named_modules(joined(prefix, child.name))) found.push_back(std::move(entry));
  }
  return found;
}

void Module::replace_child(const std::string& name, std::shared_ptr<Module> module) {
  for (Child& child : children_) {
    if (child.name != name) continue;
    child.rebind(module);
    child.module = std::move(module);
    return;
  }
  throw ArgumentError(fmt::format("the module has no child \"{}\"", name));
}

std::shared_ptr<Parameter> Module::parameter(std::string name, std::vector<int64_t> shape,
                                             std::vector<TensorSlice> slices) {
  auto parameter = std::make_shared<Parameter>(
      Parameter{.name = std::move(name), .shape = std::move(shape), .slices = std::move(slices), .tensor = {}});
  parameters_.push_back(parameter);
  return parameter;
}

void Module::share_parameter(std::shared_ptr<Parameter> parameter) {
  parameters_.push_back(std::move(parameter));
}

void allocate_parameters(Module& module, c10::ScalarType dtype, c10::Device device) {
  const auto parameters = module.named_parameters();
  if (!device.is_cpu()) {
    for (const auto& [name, parameter] : parameters) {
      parameter->tensor = at::empty(parameter->shape, at::TensorOptions(dtype).device(device));
    }
    return;
  }
  int64_t bytes = 0;
  for (const auto& [name, parameter] : parameters) bytes += WeightArena::footprint(parameter->shape, dtype);
  const auto arena = WeightArena::create(bytes);
  for (const auto& [name, parameter] : parameters) parameter->tensor = arena->allocate(parameter->shape, dtype);
}

int64_t parameter_bytes(const Module& module) {
  int64_t bytes = 0;
  for (const auto& [name, parameter] : module.named_parameters()) bytes += parameter->nbytes();
  return bytes;
}

}  // namespace headway
