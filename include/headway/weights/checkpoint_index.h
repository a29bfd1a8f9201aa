#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headway/weights/safetensors_file.h"

namespace headway {

/// Where one checkpoint tensor lies.
struct TensorLocation {
  std::shared_ptr<const SafetensorsFile> file;
  TensorInfo info;
};

/// The tensors of a checkpoint folder: model.safetensors.index.json with its shards, or model.safetensors alone. Only
/// the files that the index names are read; what is ignored is logged. Torch-free.
class CheckpointIndex {
 public:
  /// Opens and checks every file. Throws CheckpointError (absent shard, stale index, LFS pointer, .bin only, ...).
  explicit CheckpointIndex(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const std::map<std::string, TensorLocation>& tensors() const { return tensors_; }

 private:
  std::filesystem::path folder_;
  std::map<std::string, TensorLocation> tensors_;
};

}  // namespace headway
