#pragma once

#include <torch/csrc/utils/pybind.h>

// What the files of the extension module headway._C share. Every binding that may take long releases the GIL; C++
// errors arrive as the exceptions of headway/errors.py.
namespace headway {

using ReleaseGil = py::call_guard<py::gil_scoped_release>;

void bind_errors(py::module_& module);
void bind_distributed(py::module_& module);
void bind_layers(py::module_& module);
void bind_spmd(py::module_& module);
void bind_engine(py::module_& module);

}  // namespace headway
