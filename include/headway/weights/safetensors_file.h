#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headway/base/dtype.h"

namespace headway {

/// One tensor as the header of a safetensors file describes it.
struct TensorInfo {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  int64_t begin = 0;  ///< bytes from the start of the data section
  int64_t end = 0;

  int64_t bytes() const { return end - begin; }
};

/// The header of a safetensors file, every rule of the format checked.
struct SafetensorsHeader {
  std::map<std::string, TensorInfo> tensors;
  int64_t data_offset = 0;  ///< where the data section starts in the file

  /// `prefix` is the file's first bytes (all of 8 + header length), `file_size` its length. Throws CheckpointError
  /// that begins with `source`.
  static SafetensorsHeader parse(std::span<const std::byte> prefix, int64_t file_size, std::string_view source);
};

/// A safetensors file mapped for reading. Torch-free.
class SafetensorsFile {
 public:
  /// Opens, maps and checks; throws CheckpointError naming the file, the tensor, what was expected and what is there.
  explicit SafetensorsFile(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, TensorInfo>& tensors() const { return header_.tensors; }
  std::span<const std::byte> data(const TensorInfo& info) const;

  /// Tells the kernel that these bytes, a part of what `data` returned, are read next.
  void will_read(std::span<const std::byte> bytes) const;

  /// Tells the kernel that these bytes are done with, so that they stop counting as this process's memory.
  void release(std::span<const std::byte> bytes) const;

 private:
  void advise(std::span<const std::byte> bytes, int advice) const;

  std::filesystem::path path_;
  SafetensorsHeader header_;
  std::byte* mapping_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace headway
