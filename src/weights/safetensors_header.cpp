#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "headway/base/error.h"
#include "headway/weights/safetensors_file.h"
#include "weights/in_quotes.h"
#include "weights/safetensors_header_reader.h"

namespace headway {
namespace {

constexpr int64_t kLengthBytes = 8;
constexpr uint64_t kLargestHeader = 100'000'000;  // the format's own limit
constexpr std::string_view kLfsPointer = "version https://git-lfs";

using NamedTensor = std::pair<const std::string, TensorInfo>;

void refuse_lfs_pointer(std::string_view text, std::string_view source) {
  if (!text.starts_with(kLfsPointer)) return;
  throw CheckpointError(
      fmt::format("{}: not a safetensors file but a Git LFS pointer of {} bytes; fetch the weights "
                  "themselves, e.g. with git lfs pull",
                  source, text.size()));
}

/// The length of the JSON header, checked against the file's size and the format's limit.
int64_t header_length(std::string_view text, int64_t file_size, std::string_view source) {
  uint64_t length = 0;
  if (file_size < kLengthBytes || static_cast<int64_t>(text.size()) < kLengthBytes) {
    throw CheckpointError(fmt::format("{}: {} bytes are too short for a safetensors file", source, file_size));
  }
  for (int64_t i = 0; i < kLengthBytes; ++i) {
    length |= uint64_t{static_cast<unsigned char>(text[static_cast<size_t>(i)])} << (8 * i);
  }
  if (length > static_cast<uint64_t>(file_size - kLengthBytes)) {
    throw CheckpointError(
        fmt::format("{}: not a safetensors file, or cut short: its first bytes announce a header of "
                    "{} bytes, but the file has {}",
                    source, length, file_size));
  }
  if (length > kLargestHeader) {
    throw CheckpointError(fmt::format("{}: a header of {} bytes is longer than the {} that the format allows", source,
                                      length, kLargestHeader));
  }
  if (length > text.size() - kLengthBytes) {
    throw CheckpointError(
        fmt::format("{}: only {} of the header's {} bytes were read", source, text.size() - kLengthBytes, length));
  }
  return static_cast<int64_t>(length);
}

void check_extent(const std::string& name, const TensorInfo& info, std::string_view source) {
  int64_t bytes = size_of(info.dtype);
  bool overflow = false;
  // A size of 0 makes the product 0, however large the others are.
  if (std::ranges::find(info.shape, 0) != info.shape.end()) bytes = 0;
  for (const int64_t size : info.shape) overflow = overflow || __builtin_mul_overflow(bytes, size, &bytes);
  if (overflow) {
    throw CheckpointError(fmt::format("{}: tensor {}: the shape [{}] is too large", source, in_quotes(name),
                                      fmt::join(info.shape, ", ")));
  }
  if (info.begin > info.end || info.bytes() != bytes) {
    throw CheckpointError(fmt::format(
        "{}: tensor {}: {} of shape [{}] takes {} bytes, but its offsets [{}, {}] hold {}", source, in_quotes(name),
        name_of(info.dtype), fmt::join(info.shape, ", "), bytes, info.begin, info.end, info.bytes()));
  }
}

/// Checks that the tensors cover the data section once, without holes, and returns where the last one ends.
int64_t check_cover(const std::map<std::string, TensorInfo>& tensors, std::string_view source) {
  std::vector<const NamedTensor*> sorted;
  for (const NamedTensor& tensor : tensors) sorted.push_back(&tensor);
  std::ranges::sort(sorted, {},
                    [](const NamedTensor* tensor) { return std::pair(tensor->second.begin, tensor->second.end); });
  int64_t covered = 0;
  std::string previous = "the start of the data";
  for (const auto* tensor : sorted) {
    const auto& [name, info] = *tensor;
    if (info.begin != covered) {
      throw CheckpointError(fmt::format("{}: tensor {} begins at {}, but {} ends at {}: {}", source, in_quotes(name),
                                        info.begin, previous, covered,
                                        info.begin < covered ? "they overlap" : "there is a hole between them"));
    }
    covered = info.end;
    previous = "tensor " + in_quotes(name);
  }
  return covered;
}

}  // namespace

SafetensorsHeader SafetensorsHeader::parse(std::span<const std::byte> prefix, int64_t file_size,
                                           std::string_view source) {
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  refuse_lfs_pointer(text, source);
  const int64_t length = header_length(text, file_size, source);
  const std::string_view json = text.substr(kLengthBytes, static_cast<size_t>(length));
  if (json.find('\0') != std::string_view::npos) {  // where the JSON parser would stop as at the end
    throw CheckpointError(fmt::format("{}: the header is not valid JSON: it holds a zero byte", source));
  }
  if (!json.starts_with('{')) throw CheckpointError(fmt::format("{}: the header does not begin with {{", source));

  SafetensorsHeader header;
  header.data_offset = kLengthBytes + length;
  header.tensors = SafetensorsHeaderReader::read(json, source);
  for (const auto& [name, info] : header.tensors) check_extent(name, info, source);
  const int64_t data_bytes = check_cover(header.tensors, source);
  if (data_bytes != file_size - header.data_offset) {
    throw CheckpointError(fmt::format(
        "{}: {} bytes are expected (8, a header of {}, data of {}), but the file has {}", source,
        static_cast<uint64_t>(header.data_offset) + static_cast<uint64_t>(data_bytes), length, data_bytes, file_size));
  }
  return header;
}

}  // namespace headway
