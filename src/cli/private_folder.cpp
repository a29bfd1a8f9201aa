#include "cli/private_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "headway/base/error.h"

namespace headway {

PrivateFolder::PrivateFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "headway-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) throw LaunchError(fmt::format("{}: {}", path, std::strerror(errno)));
  path_ = path;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace headway
