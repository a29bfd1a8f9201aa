#include "bindings.h"

PYBIND11_MODULE(_C, module) {
  module.attr("__version__") = HEADWAY_VERSION;
  headway::bind_errors(module);
  headway::bind_distributed(module);
  headway::bind_layers(module);
  headway::bind_spmd(module);
  headway::bind_engine(module);
}
