#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headway/base/error.h"
#include "headway/weights/parameter.h"

namespace headway {

/// A node of the model tree: named parameters, each with the slices that fill it, and named children that can be
/// replaced. Building a module declares its parameters; `allocate_parameters` gives them memory; a loader fills them.
class Module {
 public:
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  struct Child {
    std::string name;
    std::shared_ptr<Module> module;
    std::function<void(std::shared_ptr<Module>)> rebind;  ///< points the parent's own member at a replacement
  };

  const std::vector<std::shared_ptr<Parameter>>& own_parameters() const { return parameters_; }
  const std::vector<Child>& children() const { return children_; }

  /// The parameter "weight" or "bias" of this module itself; throws ArgumentError if it has none of that name.
  Parameter& own_parameter(const std::string& name) const;

  /// Every parameter of the tree with its dotted name, in declaration order. A parameter that two modules share is
  /// listed once, under the name that comes first.
  std::vector<NamedParameter> named_parameters(const std::string& prefix = "") const;

  /// Every module of the tree with its dotted name, this one first.
  std::vector<std::pair<std::string, Module*>> named_modules(const std::string& prefix = "");

  /// Puts another module in the place of a direct child. Throws ArgumentError if there is none of that name or if
  /// the parent cannot call a module of that type.
  void replace_child(const std::string& name, std::shared_ptr<Module> module);

 protected:
  Module() = default;

  /// Declares a parameter of this module.
  std::shared_ptr<Parameter> parameter(std::string name, std::vector<int64_t> shape, std::vector<TensorSlice> slices);

  /// Makes a parameter that another module declared one of this module's too, e.g. of a tied LM head.
  void share_parameter(std::shared_ptr<Parameter> parameter);

  /// Builds a T as the child `name` and points `member` at it. `Base` is what the parent calls it by.
  template <typename T, typename Base, typename... Args>
  void child(std::string name, std::shared_ptr<Base>& member, Args&&... args) {
    auto module = std::make_shared<T>(std::forward<Args>(args)...);
    member = module;
    children_.push_back({std::move(name), module, [&member](std::shared_ptr<Module> replacement) {
                           auto typed = std::dynamic_pointer_cast<Base>(std::move(replacement));
                           if (!typed) throw ArgumentError("the parent cannot call a module of the replacement's type");
                           member = std::move(typed);
                         }});
  }

 private:
  void collect_parameters(const std::string& prefix, std::vector<NamedParameter>& found) const;

  std::vector<std::shared_ptr<Parameter>> parameters_;
  std::vector<Child> children_;
};

/// Gives every parameter of the tree memory: on the CPU in one huge-page arena, else tensor by tensor on the device.
void allocate_parameters(Module& module, c10::ScalarType dtype, c10::Device device = c10::kCPU);

/// Turns the filled matrices of the tree into int8 where they allow it, in an arena of their own that the other
/// parameters move to as well: row r becomes round(row / s) with s = largest |value| of the whole row / 127, so that
/// the same row has the same scale and the same values however it is cut over ranks. Every rank of the model calls it.
/// On the CPU only: throws ConfigError elsewhere.
void quantize_to_int8(Module& module);

/// Bytes of all allotted parameters of the tree, shared ones counted once.
int64_t parameter_bytes(const Module& module);

}  // namespace headway
