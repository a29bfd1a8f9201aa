#include "parallel/store/store_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "headway/base/error.h"
#include "parallel/launch/launch_variables.h"

namespace headway {
namespace {

constexpr size_t kLongestText = 256;

[[noreturn]] void refuse(const std::filesystem::path& path, const char* what) {
  throw LaunchError(fmt::format("rendezvous file {}: cannot {}: {}", path.string(), what, std::strerror(errno)));
}

bool same_file(int descriptor, const std::filesystem::path& path) {
  struct stat mine {};
  struct stat there {};
  return ::fstat(descriptor, &mine) == 0 && ::lstat(path.c_str(), &there) == 0 && mine.st_dev == there.st_dev &&
         mine.st_ino == there.st_ino;
}

}  // namespace

StoreFile::StoreFile(std::filesystem::path path, const std::string& text) : path_(std::move(path)) {
  if (read(path_)) {
    throw LaunchError(fmt::format("rendezvous file {} belongs to another running job; set {} to a text of its own",
                                  path_.string(), kJobIdVariable));
  }
  std::string temporary = path_.string() + ".XXXXXX";
  descriptor_ = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor_ < 0) refuse(path_, "create");
  const bool written = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 &&
                       ::write(descriptor_, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::rename(temporary.c_str(), path_.c_str()) == 0;
  if (written) return;
  const int reason = errno;
  ::unlink(temporary.c_str());
  ::close(descriptor_);
  errno = reason;
  refuse(path_, "write");
}

StoreFile::~StoreFile() {
  if (same_file(descriptor_, path_)) ::unlink(path_.c_str());
  ::close(descriptor_);
}

std::optional<std::string> StoreFile::read(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return std::nullopt;
  struct stat status {};
  const bool ours = ::fstat(descriptor, &status) == 0 && status.st_uid == ::geteuid();
  const bool owner_lives = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  char text[kLongestText];
  const ssize_t length = ours && owner_lives ? ::read(descriptor, text, sizeof(text)) : -1;
  ::close(descriptor);
  return length > 0 ? std::optional<std::string>(std::string(text, length)) : std::nullopt;
}

}  // namespace headway
