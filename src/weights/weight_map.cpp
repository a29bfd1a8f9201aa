#include "weights/weight_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "headway/base/error.h"
#include "weights/in_quotes.h"

namespace headway {
namespace {

void check_file_name(const std::string& name, std::string_view source) {
  const std::filesystem::path path(name);
  if (path.is_absolute() || std::ranges::find(path, "..") != path.end()) {
    throw CheckpointError(fmt::format("{}: the file name {} leaves the folder", source, in_quotes(name)));
  }
  if (path.extension() != ".safetensors" || name.find('\0') != std::string::npos) {
    throw CheckpointError(fmt::format("{}: {} is not the name of a safetensors file", source, in_quotes(name)));
  }
}

}  // namespace

std::map<std::string, std::string> parse_weight_map(const Json& index, std::string_view source) {
  const auto found = index.is_object() ? index.find("weight_map") : index.end();
  if (found == index.end() || !found->is_object() || found->empty()) {
    throw CheckpointError(fmt::format("{}: there is no \"weight_map\" with entries", source));
  }
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : found->items()) {
    if (!file.is_string()) {
      throw CheckpointError(fmt::format("{}: the file of {} is not given as text", source, in_quotes(tensor)));
    }
    check_file_name(file.get<std::string>(), source);
    files.emplace(tensor, file.get<std::string>());
  }
  return files;
}

}  // namespace headway
