#include "parallel/cuda_plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "headway/base/error.h"

namespace headway {
namespace {

constexpr char kLibrary[] = "libheadway_cuda.so";

std::filesystem::path folder_of_this_library() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&cuda_plugin), &info) == 0 || !info.dli_fname) return {};
  return std::filesystem::path(info.dli_fname).parent_path();
}

CudaPlugin& load() {
  const std::filesystem::path path = folder_of_this_library() / kLibrary;
  // Global, because torch finds its CUDA kernels through symbols that the library brings in.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) throw ConfigError(fmt::format("device cuda: {} cannot be loaded: {}", path.string(), ::dlerror()));
  const auto entry = reinterpret_cast<CudaPluginEntry>(::dlsym(library, kCudaPluginEntry));
  if (!entry) throw ConfigError(fmt::format("device cuda: {} has no {}", path.string(), kCudaPluginEntry));
  return *entry();
}

}  // namespace

CudaPlugin& cuda_plugin() {
  static CudaPlugin& plugin = load();
  return plugin;
}

}  // namespace headway
