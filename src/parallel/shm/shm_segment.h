#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "parallel/shm/shm_process.h"

namespace headway {

/// Why a group can no longer be used. The first reason stays.
class Verdict {
 public:
  bool failed() const { return state_.load(std::memory_order_acquire) != kSound; }
  void fail(std::string_view reason);
  std::string reason() const;

 private:
  static constexpr uint32_t kSound = 0, kWriting = 1, kFailed = 2;
  std::atomic<uint32_t> state_{kSound};
  uint32_t length_ = 0;
  char text_[2040];
};

/// Where a process that was told so finds another one's memory.
struct SegmentAddress {
  ProcessIdentity owner;
  int descriptor = -1;
  uint64_t token = 0;  ///< random, to tell the segment from whatever else that descriptor may mean
  size_t bytes = 0;
};

/// Memory shared by processes of one host. It has no name anywhere in the file system (a memory file, reached through
/// its owner's /proc entry), so nothing is left behind however its users end, and the size of /dev/shm is no limit.
class SharedSegment {
 public:
  static constexpr size_t kAlignment = 4096;

  /// New zeroed memory with `bytes` of data. Only what is reserved may be touched. Throws CommunicationError.
  static std::shared_ptr<SharedSegment> create(size_t bytes);
  /// Another process's. Throws CommunicationError if it is not what the address says.
  static std::shared_ptr<SharedSegment> open(const SegmentAddress& address);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  std::byte* data() const { return base_ + kAlignment; }
  size_t bytes() const { return bytes_; }
  Verdict& verdict() const;
  SegmentAddress address() const;

  /// Takes memory for [begin, begin + bytes) of the data now, near this process, instead of being killed by SIGBUS on a
  /// later write. Throws CommunicationError if there is not enough.
  void reserve(size_t begin, size_t bytes);

  /// To be called once all processes have opened and reserved; what is mapped stays.
  void close_descriptor();

 private:
  SharedSegment(int descriptor, size_t bytes) : descriptor_(descriptor), bytes_(bytes) {}
  void map();

  int descriptor_;
  size_t bytes_;
  std::byte* base_ = nullptr;
};

}  // namespace headway
