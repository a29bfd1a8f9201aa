// A whole safetensors file: whatever its bytes are, it is refused with a CheckpointError, or every tensor lies in it.
#include <map>

#include "fuzz/live_heap.h"
#include "headway/base/error.h"
#include "headway/weights/safetensors_file.h"

namespace headway::test {
namespace {

void check_tensors(const SafetensorsHeader& header, int64_t file_size) {
  std::map<int64_t, int64_t> parts;
  for (const auto& [name, info] : header.tensors) {
    require(0 <= info.begin && info.begin <= info.end, "a tensor does not end before it begins");
    require(info.end <= file_size - header.data_offset, "a tensor ends within the file");
    int64_t elements = 1;
    for (const int64_t extent : info.shape) elements *= extent;
    require(elements * size_of(info.dtype) == info.bytes(), "a tensor has the bytes of its shape");
    if (info.bytes() > 0) require(parts.emplace(info.begin, info.end).second, "no two tensors begin at one place");
  }
  int64_t covered = 0;
  for (const auto& [begin, end] : parts) {
    require(begin == covered, "tensors lie side by side");
    covered = end;
  }
  require(header.data_offset + covered == file_size, "tensors fill the file");
}

}  // namespace
}  // namespace headway::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const headway::test::LiveHeapLimit limit;
  const auto file_size = static_cast<int64_t>(size);
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    headway::test::check_tensors(headway::SafetensorsHeader::parse(bytes, file_size, "model.safetensors"), file_size);
  } catch (const headway::CheckpointError&) {
  }
  return 0;
}
