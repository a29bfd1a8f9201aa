#pragma once

#include <filesystem>

namespace headway {

/// A new folder below the system's temporary one that only this user may enter; it goes with this object.
class PrivateFolder {
 public:
  PrivateFolder();  ///< throws LaunchError naming the path
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace headway
