#include "headway/weights/safetensors_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "headway/base/error.h"

namespace headway {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(const std::filesystem::path& path) : value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (value_ < 0) throw CheckpointError(fmt::format("{}: cannot be opened: {}", path.string(), std::strerror(errno)));
  }
  ~FileDescriptor() { ::close(value_); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int value() const { return value_; }

 private:
  int value_;
};

int64_t size_of_regular_file(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.value(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw CheckpointError(fmt::format("{}: not a regular file", path.string()));
  }
  if (status.st_size == 0) throw CheckpointError(fmt::format("{}: the file is empty", path.string()));
  return status.st_size;
}

std::byte* map_for_reading(const FileDescriptor& file, int64_t size, const std::filesystem::path& path) {
  void* address = ::mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_SHARED, file.value(), 0);
  if (address == MAP_FAILED) {
    throw CheckpointError(fmt::format("{}: {} bytes cannot be mapped: {}", path.string(), size, std::strerror(errno)));
  }
  return static_cast<std::byte*>(address);
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path) {
  const FileDescriptor file(path);
  size_ = size_of_regular_file(file, path);
  mapping_ = map_for_reading(file, size_, path);
  try {
    const std::span<const std::byte> whole(mapping_, static_cast<size_t>(size_));
    header_ = SafetensorsHeader::parse(whole, size_, path.string());
    release(whole.first(static_cast<size_t>(header_.data_offset)));
  } catch (...) {
    ::munmap(mapping_, static_cast<size_t>(size_));
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() {
  ::munmap(mapping_, static_cast<size_t>(size_));
}

std::span<const std::byte> SafetensorsFile::data(const TensorInfo& info) const {
  return {mapping_ + header_.data_offset + info.begin, static_cast<size_t>(info.bytes())};
}

void SafetensorsFile::will_read(std::span<const std::byte> bytes) const {
  advise(bytes, MADV_WILLNEED);
}

void SafetensorsFile::release(std::span<const std::byte> bytes) const {
  advise(bytes, MADV_DONTNEED);
}

void SafetensorsFile::advise(std::span<const std::byte> bytes, int advice) const {
  if (bytes.empty()) return;
  // A fault maps the pages around it as well, 64 KiB in all. Releasing those of a neighbour does no harm: whoever reads
  // it next has them mapped again from the page cache.
  constexpr int64_t kMappedAtOnce = int64_t{64} << 10;
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  const auto first = reinterpret_cast<uintptr_t>(mapping_);
  const uintptr_t begin = std::max(address / kMappedAtOnce * kMappedAtOnce, first);
  const uintptr_t end = std::min((address + bytes.size() + kMappedAtOnce - 1) / kMappedAtOnce * kMappedAtOnce,
                                 first + static_cast<uintptr_t>(size_));
  ::madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

}  // namespace headway
