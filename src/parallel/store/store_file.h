#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace headway {

/// The file by which rank 0 of a job on one host tells the others where its store is. Its owner holds a lock on it for
/// as long as it lives, so a file that a dead job left behind is recognised and replaced. The file is removed with
/// this object.
class StoreFile {
 public:
  /// Throws LaunchError naming the path if it cannot be written or belongs to another running job.
  StoreFile(std::filesystem::path path, const std::string& text);
  ~StoreFile();
  StoreFile(const StoreFile&) = delete;
  StoreFile& operator=(const StoreFile&) = delete;

  /// The text at `path` if its owner lives and is of this user.
  static std::optional<std::string> read(const std::filesystem::path& path);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace headway
