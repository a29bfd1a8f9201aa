#include "parallel/shm/shm_segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <random>

#include "headway/base/error.h"

namespace headway {
namespace {

struct SegmentHeader {
  uint64_t token = 0;
  uint64_t bytes = 0;
  alignas(128) Verdict verdict;
};
static_assert(sizeof(SegmentHeader) <= SharedSegment::kAlignment);

SegmentHeader& header_of(std::byte* base) {
  return *reinterpret_cast<SegmentHeader*>(base);
}

uint64_t random_token() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

[[noreturn]] void throw_system_error(const std::string& what, int code) {
  throw CommunicationError(fmt::format("{}: {}", what, std::strerror(code)));
}

/// Growing a file beyond this limit would end the process by SIGXFSZ.
void check_file_size_limit(size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes) {
    throw CommunicationError(fmt::format(
        "{} bytes of shared memory exceed the file size limit of this process ({} bytes)", bytes, limit.rlim_cur));
  }
}

}  // namespace

void Verdict::fail(std::string_view reason) {
  uint32_t sound = kSound;
  if (!state_.compare_exchange_strong(sound, kWriting, std::memory_order_acq_rel)) return;
  length_ = static_cast<uint32_t>(std::min(reason.size(), sizeof(text_)));
  std::memcpy(text_, reason.data(), length_);
  state_.store(kFailed, std::memory_order_release);
}

std::string Verdict::reason() const {
  if (state_.load(std::memory_order_acquire) != kFailed) return "a member gave up";  // and has not yet said why
  return std::string(text_, length_);
}

std::shared_ptr<SharedSegment> SharedSegment::create(size_t bytes) {
  const size_t total = kAlignment + bytes;
  check_file_size_limit(total);
  const int descriptor = ::memfd_create("headway", MFD_CLOEXEC);
  if (descriptor < 0) throw_system_error("memfd_create", errno);
  std::shared_ptr<SharedSegment> segment(new SharedSegment(descriptor, bytes));
  if (::ftruncate(descriptor, static_cast<off_t>(total)) != 0) {
    throw_system_error(fmt::format("{} bytes of shared memory", total), errno);
  }
  segment->map();
  if (::fallocate(descriptor, 0, 0, kAlignment) != 0) throw_system_error("one page of shared memory", errno);
  SegmentHeader& header = *new (segment->base_) SegmentHeader;
  header.token = random_token();
  header.bytes = bytes;
  return segment;
}

std::shared_ptr<SharedSegment> SharedSegment::open(const SegmentAddress& address) {
  const std::string path = fmt::format("/proc/{}/fd/{}", address.owner.pid, address.descriptor);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) throw_system_error(fmt::format("shared memory {}", path), errno);
  std::shared_ptr<SharedSegment> segment(new SharedSegment(descriptor, address.bytes));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || static_cast<uint64_t>(status.st_size) != kAlignment + address.bytes) {
    throw CommunicationError(
        fmt::format("shared memory {} has {} bytes instead of {}", path, status.st_size, kAlignment + address.bytes));
  }
  segment->map();
  const SegmentHeader& header = header_of(segment->base_);
  if (header.token != address.token || header.bytes != address.bytes) {
    throw CommunicationError(fmt::format("{} is not the shared memory of this group", path));
  }
  return segment;
}

SharedSegment::~SharedSegment() {
  if (base_ != nullptr) ::munmap(base_, kAlignment + bytes_);
  close_descriptor();
}

void SharedSegment::map() {
  void* base = ::mmap(nullptr, kAlignment + bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (base == MAP_FAILED) throw_system_error(fmt::format("mapping {} bytes of shared memory", bytes_), errno);
  base_ = static_cast<std::byte*>(base);
}

Verdict& SharedSegment::verdict() const {
  return header_of(base_).verdict;
}

SegmentAddress SharedSegment::address() const {
  return {own_process(), descriptor_, header_of(base_).token, bytes_};
}

void SharedSegment::reserve(size_t begin, size_t bytes) {
  if (bytes == 0) return;
  int code = 0;
  do {
    const auto offset = static_cast<off_t>(kAlignment + begin);
    code = ::fallocate(descriptor_, 0, offset, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (code == EINTR);
  if (code != 0) throw_system_error(fmt::format("taking {} bytes of shared memory", bytes), code);
}

void SharedSegment::close_descriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace headway
