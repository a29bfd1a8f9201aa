#include "engine/kv_cache_size.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/ops/tensor.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include "headway/base/error.h"

namespace headway {
namespace {

/// The number in a file that holds one, such as the control group's; nothing for "max" or an absent file.
std::optional<int64_t> number_in(const char* path) {
  int64_t number = 0;
  if (std::ifstream(path) >> number) return number;
  return std::nullopt;
}

int64_t available_by_system() {
  std::ifstream lines("/proc/meminfo");
  std::string name;
  int64_t kibibytes = 0;
  while (lines >> name >> kibibytes) {
    if (name == "MemAvailable:") return kibibytes * 1024;
    lines.ignore(64, '\n');
  }
  throw Error("/proc/meminfo has no MemAvailable");
}

}  // namespace

int64_t free_memory_bytes(c10::Device device) {
  if (!device.is_cpu()) return static_cast<int64_t>(at::accelerator::getMemoryInfo(device.index()).first);
  int64_t bytes = available_by_system();
  const auto limit = number_in("/sys/fs/cgroup/memory.max");
  const auto used = number_in("/sys/fs/cgroup/memory.current");
  if (limit && used) bytes = std::min(bytes, std::max<int64_t>(*limit - *used, 0));
  return bytes;
}

int64_t kv_block_bytes(const CausalLM& model, int64_t block_size) {
  const ModelConfig& config = model.config();
  const int64_t values = config.num_layers * 2 * block_size * model.heads().local_kv_heads() * config.head_dim;
  return values * static_cast<int64_t>(c10::elementSize(model.dtype()));
}

int64_t affordable_blocks(int64_t wanted, int64_t block_bytes, int64_t free_bytes, int ranks) {
  const int64_t fitting = free_bytes / 2 / ranks / block_bytes;
  if (fitting < 1) {
    throw Error(
        fmt::format("a KV block takes {} bytes, but half of the {} bytes that are free, over {} ranks, hold none",
                    block_bytes, free_bytes, ranks));
  }
  return std::min(wanted, fitting);
}

int64_t smallest_over_ranks(const GroupCoordinator& world, int64_t blocks, c10::Device device) {
  const at::Tensor all = world.all_gather(at::tensor({blocks}, at::kLong).to(device), 0).to(at::kCPU);
  const int64_t* counts = all.const_data_ptr<int64_t>();
  return *std::min_element(counts, counts + all.numel());
}

}  // namespace headway
