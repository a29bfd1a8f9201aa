# Imported targets for the torch wheel of a Python interpreter, without find_package(Torch), which needs a CUDA toolkit
# that matches the wheel. Nothing here imports torch; only files are looked up.
#   headway_torch::cpu     headers, libc10, libtorch_cpu
#   headway_torch::cuda    the above, CUDA and NCCL headers, libc10_cuda, libtorch_cuda, libcudart, libnccl
#   headway_torch::python  the above cpu part, libtorch_python and Python's headers
# Set HEADWAY_PYTHON to choose the interpreter; HEADWAY_TORCH_HAS_CUDA tells whether ::cuda exists.
include_guard(GLOBAL)

set(HEADWAY_PYTHON "" CACHE FILEPATH "Python interpreter whose torch wheel is used")
if(HEADWAY_PYTHON)
  set(Python_EXECUTABLE ${HEADWAY_PYTHON})
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)
execute_process(
  COMMAND ${Python_EXECUTABLE} -c
    "import importlib.util as u, os; s = u.find_spec('torch'); print(os.path.dirname(s.origin) if s else '', end='')"
  OUTPUT_VARIABLE HEADWAY_TORCH_DIR)
if(NOT EXISTS "${HEADWAY_TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "No torch wheel found by ${Python_EXECUTABLE}; install torch there or set HEADWAY_PYTHON")
endif()
file(STRINGS ${HEADWAY_TORCH_DIR}/version.py _version REGEX "^__version__")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" HEADWAY_TORCH_VERSION "${_version}")
if(HEADWAY_TORCH_VERSION VERSION_LESS 2.11 OR HEADWAY_TORCH_VERSION VERSION_GREATER_EQUAL 2.16)
  message(WARNING "torch ${HEADWAY_TORCH_VERSION} is outside the tested range 2.11 - 2.15")
endif()
message(STATUS "torch ${HEADWAY_TORCH_VERSION} at ${HEADWAY_TORCH_DIR}")

function(_headway_torch_library name file)
  add_library(headway_torch::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(headway_torch::${name} PROPERTIES IMPORTED_LOCATION ${file})
endfunction()

_headway_torch_library(c10 ${HEADWAY_TORCH_DIR}/lib/libc10.so)
_headway_torch_library(torch_cpu ${HEADWAY_TORCH_DIR}/lib/libtorch_cpu.so)
add_library(headway_torch::cpu INTERFACE IMPORTED GLOBAL)
target_include_directories(headway_torch::cpu SYSTEM INTERFACE
  ${HEADWAY_TORCH_DIR}/include ${HEADWAY_TORCH_DIR}/include/torch/csrc/api/include)
# torch bundles newer fmt headers than the system's library: header-only use keeps the two apart.
target_compile_definitions(headway_torch::cpu INTERFACE
  AT_PER_OPERATOR_HEADERS USE_C10D_GLOO USE_DISTRIBUTED FMT_HEADER_ONLY=1)
target_compile_features(headway_torch::cpu INTERFACE cxx_std_20)
target_link_libraries(headway_torch::cpu INTERFACE headway_torch::torch_cpu headway_torch::c10)

set(HEADWAY_TORCH_HAS_CUDA OFF)
cmake_path(GET HEADWAY_TORCH_DIR PARENT_PATH _site)
file(GLOB _cuda_roots ${_site}/nvidia/cu1*)
find_path(HEADWAY_CUDART_INCLUDE cuda_runtime_api.h HINTS ${_cuda_roots} PATH_SUFFIXES include NO_DEFAULT_PATH)
find_path(HEADWAY_NCCL_INCLUDE nccl.h HINTS ${_site}/nvidia/nccl PATH_SUFFIXES include NO_DEFAULT_PATH)
file(GLOB _cudart ${_site}/nvidia/cu1*/lib/libcudart.so.1*)
set(_nccl ${_site}/nvidia/nccl/lib/libnccl.so.2)
if(EXISTS ${HEADWAY_TORCH_DIR}/lib/libtorch_cuda.so AND HEADWAY_CUDART_INCLUDE AND HEADWAY_NCCL_INCLUDE AND _cudart
   AND EXISTS ${_nccl})
  set(HEADWAY_TORCH_HAS_CUDA ON)
  _headway_torch_library(c10_cuda ${HEADWAY_TORCH_DIR}/lib/libc10_cuda.so)
  _headway_torch_library(torch_cuda ${HEADWAY_TORCH_DIR}/lib/libtorch_cuda.so)
  _headway_torch_library(cudart ${_cudart})
  _headway_torch_library(nccl ${_nccl})
  add_library(headway_torch::cuda INTERFACE IMPORTED GLOBAL)
  target_include_directories(headway_torch::cuda SYSTEM INTERFACE ${HEADWAY_CUDART_INCLUDE} ${HEADWAY_NCCL_INCLUDE})
  target_compile_definitions(headway_torch::cuda INTERFACE USE_C10D_NCCL)
  # libtorch_cuda registers its kernels from static initialisers, so it must stay linked though nothing names it.
  target_link_libraries(headway_torch::cuda INTERFACE headway_torch::cpu
    -Wl,--push-state,--no-as-needed headway_torch::torch_cuda headway_torch::c10_cuda -Wl,--pop-state
    headway_torch::cudart headway_torch::nccl)
endif()

if(TARGET Python::Module)
  _headway_torch_library(torch_python ${HEADWAY_TORCH_DIR}/lib/libtorch_python.so)
  add_library(headway_torch::python INTERFACE IMPORTED GLOBAL)
  target_link_libraries(headway_torch::python INTERFACE headway_torch::cpu headway_torch::torch_python Python::Module)
endif()
