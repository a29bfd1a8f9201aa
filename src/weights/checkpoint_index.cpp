#include "headway/weights/checkpoint_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/json.h"
#include "headway/base/error.h"
#include "headway/base/log.h"
#include "weights/in_quotes.h"
#include "weights/listed.h"
#include "weights/weight_map.h"

namespace headway {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kSingleFileName = "model.safetensors";
constexpr size_t kLargestIndexBytes = size_t{32} << 20;
constexpr std::array<std::string_view, 6> kWeightExtensions{".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5"};

/// Also true of a link that leads nowhere, so that it is reported and not taken for absent.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

/// Names of the files of the folder that hold weights in some format, sorted.
std::vector<std::string> weight_files(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const bool holds_weights =
        std::ranges::find(kWeightExtensions, entry->path().extension().string()) != kWeightExtensions.end();
    if (holds_weights) names.push_back(entry->path().filename().string());
  }
  if (error) throw CheckpointError(fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
  std::ranges::sort(names);
  return names;
}

[[noreturn]] void refuse_without_safetensors(const fs::path& folder) {
  const std::string wanted =
      fmt::format("{}: neither {} nor {} is there", folder.string(), kSingleFileName, kIndexName);
  const std::vector<std::string> found = weight_files(folder);
  if (found.empty()) throw CheckpointError(wanted);
  const bool other_formats_only =
      std::ranges::none_of(found, [](const std::string& name) { return name.ends_with(".safetensors"); });
  throw CheckpointError(wanted + "; " +
                        listed(other_formats_only ? "files in an unsupported format (convert them to safetensors)"
                                                  : "other files with weights",
                               found));
}

using OpenFiles = std::map<std::string, std::shared_ptr<const SafetensorsFile>>;

OpenFiles open_files(const fs::path& folder, const std::set<std::string>& names, const fs::path& index) {
  std::vector<std::string> absent;
  for (const std::string& name : names) {
    if (!is_there(folder / name)) absent.push_back(in_quotes(name));
  }
  if (!absent.empty()) {
    throw CheckpointError(
        fmt::format("{}: of {} files that it names, {}", index.string(), names.size(), listed("are absent", absent)));
  }
  OpenFiles files;
  for (const std::string& name : names) files.emplace(name, std::make_shared<const SafetensorsFile>(folder / name));
  return files;
}

/// All tensors of the files; a name that two of them hold is refused.
std::map<std::string, TensorLocation> joined(const OpenFiles& files) {
  std::map<std::string, TensorLocation> tensors;
  for (const auto& [file_name, file] : files) {
    for (const auto& [name, info] : file->tensors()) {
      const auto [existing, fresh] = tensors.emplace(name, TensorLocation{file, info});
      if (fresh) continue;
      throw CheckpointError(fmt::format("tensor {} lies in two files: {} and {}", in_quotes(name),
                                        existing->second.file->path().string(), file->path().string()));
    }
  }
  return tensors;
}

void check_against_index(const std::map<std::string, std::string>& weight_map, const OpenFiles& files,
                         const std::map<std::string, TensorLocation>& tensors, const fs::path& index) {
  std::vector<std::string> lacking;
  for (const auto& [name, file] : weight_map) {
    const auto found = tensors.find(name);
    if (found == tensors.end() || found->second.file != files.at(file)) {
      lacking.push_back(fmt::format("{} in {}", in_quotes(name), file));
    }
  }
  if (!lacking.empty()) {
    throw CheckpointError(
        fmt::format("{}: {}", index.string(), listed("tensors are not in the file where it says they are", lacking)));
  }
  std::vector<std::string> unlisted;
  for (const auto& [name, location] : tensors) {
    if (!weight_map.contains(name)) unlisted.push_back(in_quotes(name));
  }
  if (!unlisted.empty()) {
    log(LogLevel::warning,
        fmt::format("{}: {}", index.string(), listed("tensors of its files are not listed, but read", unlisted)));
  }
}

void log_ignored_files(const fs::path& folder, const std::set<std::string>& used) {
  std::vector<std::string> ignored;
  for (const std::string& name : weight_files(folder)) {
    if (!used.contains(name)) ignored.push_back(name);
  }
  if (!ignored.empty()) log(LogLevel::info, fmt::format("{}: {}", folder.string(), listed("files ignored", ignored)));
}

}  // namespace

CheckpointIndex::CheckpointIndex(const fs::path& folder) : folder_(folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) throw CheckpointError(fmt::format("{}: no such folder", folder.string()));
  const fs::path index = folder / kIndexName;
  std::set<std::string> names;
  if (is_there(index)) {
    const auto weight_map = parse_weight_map(read_json_file(index, kLargestIndexBytes), index.string());
    for (const auto& [tensor, file] : weight_map) names.insert(file);
    const OpenFiles files = open_files(folder, names, index);
    tensors_ = joined(files);
    check_against_index(weight_map, files, tensors_, index);
  } else if (is_there(folder / kSingleFileName)) {
    names.insert(kSingleFileName);
    tensors_ = joined(open_files(folder, names, index));
  } else {
    refuse_without_safetensors(folder);
  }
  log_ignored_files(folder, names);
}

}  // namespace headway
