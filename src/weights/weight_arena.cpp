#include "headway/weights/weight_arena.h"

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>

#include "headway/base/error.h"
#include "headway/base/log.h"

namespace headway {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kTensorAlignment = 64;
constexpr const char* kHugePageSetting = "/sys/kernel/mm/transparent_hugepage/enabled";

int64_t rounded_up(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Maps whole huge pages at a huge page's address: one page more is mapped, and what sticks out is unmapped.
std::byte* map_aligned(int64_t bytes) {
  const int64_t mapped = bytes + kHugePage;
  void* address =
      ::mmap(nullptr, static_cast<size_t>(mapped), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    throw Error(fmt::format("{} bytes for weights cannot be reserved: {}", bytes, std::strerror(errno)));
  }
  auto* begin = static_cast<std::byte*>(address);
  const int64_t head = rounded_up(reinterpret_cast<int64_t>(begin), kHugePage) - reinterpret_cast<int64_t>(begin);
  if (head > 0) ::munmap(begin, static_cast<size_t>(head));
  ::munmap(begin + head + bytes, static_cast<size_t>(kHugePage - head));
  return begin + head;
}

std::string huge_page_setting() {
  std::ifstream file(kHugePageSetting);
  std::string setting;
  return std::getline(file, setting) ? setting : "absent";
}

/// Whether the kernel agrees to back the mapping by huge pages as it is written.
bool advise_huge_pages(std::byte* base, int64_t bytes) {
  const std::string setting = huge_page_setting();
  const bool advised = ::madvise(base, static_cast<size_t>(bytes), MADV_HUGEPAGE) == 0;
  if (advised && setting.find("[never]") == std::string::npos) return true;
  static std::once_flag logged;
  std::call_once(logged, [&] {
    log(LogLevel::warning,
        fmt::format("weights lie in ordinary pages, which decoding reads up to a fifth more slowly: {} is {}; "
                    "set it to madvise for huge pages",
                    kHugePageSetting, setting));
  });
  return false;
}

}  // namespace

std::shared_ptr<WeightArena> WeightArena::create(int64_t bytes) {
  if (bytes < 0) throw ArgumentError(fmt::format("an arena of {} bytes cannot be made", bytes));
  if (bytes == 0) return std::shared_ptr<WeightArena>(new WeightArena(nullptr, 0, false));
  const int64_t rounded = rounded_up(bytes, kHugePage);
  std::byte* base = map_aligned(rounded);
  return std::shared_ptr<WeightArena>(new WeightArena(base, rounded, advise_huge_pages(base, rounded)));
}

WeightArena::WeightArena(std::byte* base, int64_t bytes, bool huge_pages)
    : base_(base), bytes_(bytes), huge_pages_(huge_pages) {}

WeightArena::~WeightArena() {
  if (base_ != nullptr) ::munmap(base_, static_cast<size_t>(bytes_));
}

at::Tensor WeightArena::allocate(const std::vector<int64_t>& shape, c10::ScalarType dtype) {
  const int64_t wanted = footprint(shape, dtype);
  if (wanted > bytes_ - used_) {
    throw ArgumentError(fmt::format("weight arena: a tensor of shape [{}] takes {} bytes, {} of {} are left",
                                    fmt::join(shape, ", "), wanted, bytes_ - used_, bytes_));
  }
  std::byte* data = base_ + used_;
  used_ += wanted;
  return at::from_blob(
      data, shape, [keep = shared_from_this()](void*) {}, at::TensorOptions(dtype));
}

int64_t WeightArena::footprint(const std::vector<int64_t>& shape, c10::ScalarType dtype) {
  int64_t bytes = static_cast<int64_t>(c10::elementSize(dtype));
  bool fits = true;
  for (const int64_t size : shape) fits = fits && size >= 0 && !__builtin_mul_overflow(bytes, size, &bytes);
  if (!fits || bytes > INT64_MAX - kTensorAlignment) {
    throw ArgumentError(fmt::format("a tensor cannot have the shape [{}]", fmt::join(shape, ", ")));
  }
  return rounded_up(bytes, kTensorAlignment);
}

}  // namespace headway
