#include "fuzz/live_heap.h"

#include <sanitizer/allocator_interface.h>

#include <atomic>
#include <cstddef>
#include <cstdio>

namespace headway::test {
namespace {

constexpr int64_t kLimit = int64_t{64} << 20;

std::atomic<bool> counting{false};
std::atomic<int64_t> live_bytes{0};

void count_allocation(const volatile void* /*pointer*/, size_t size) {
  if (!counting || (live_bytes += static_cast<int64_t>(size)) <= kLimit) return;
  counting = false;
  std::fputs("more than 64 MB of heap are held at one time\n", stderr);
  __builtin_trap();
}

void count_release(const volatile void* pointer) {
  if (counting && pointer != nullptr) {
    live_bytes -= static_cast<int64_t>(__sanitizer_get_allocated_size(const_cast<const void*>(pointer)));
  }
}

}  // namespace

LiveHeapLimit::LiveHeapLimit() {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(count_allocation, count_release);
  require(installed != 0, "the allocator takes hooks");
  live_bytes = 0;
  counting = true;
}

LiveHeapLimit::~LiveHeapLimit() {
  counting = false;
}

void require(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "broken property: %s\n", property);
  __builtin_trap();
}

}  // namespace headway::test
