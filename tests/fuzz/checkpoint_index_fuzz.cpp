// model.safetensors.index.json of a folder with two small files: it is refused with a CheckpointError, or leads to
// tensors of these files alone.
#include <cstdlib>

#include "fuzz/live_heap.h"
#include "headway/base/error.h"
#include "headway/weights/checkpoint_index.h"
#include "support/safetensors_writer.h"
#include "support/temporary_folder.h"

namespace headway::test {
namespace {

const TemporaryFolder& checkpoint() {
  static const TemporaryFolder folder;
  static const bool written = [] {
    folder.write("a.safetensors", safetensors_of({{"first", "U8", {2}, "ab"}, {"second", "F16", {1}, "cd"}}));
    folder.write("b.safetensors", safetensors_of({{"third", "U8", {1, 3}, "efg"}}));
    return true;
  }();
  require(written, "the files are written");
  return folder;
}

void read(std::string_view index) {
  checkpoint().write("model.safetensors.index.json", index);
  const LiveHeapLimit limit;
  try {
    const CheckpointIndex tensors(checkpoint().path());
    for (const auto& [name, location] : tensors.tensors()) {
      const auto file = location.file->path();
      require(file.lexically_normal().parent_path() == checkpoint().path(), "no file lies outside the folder");
      require(!location.file->data(location.info).empty(), "each tensor has bytes");
    }
  } catch (const CheckpointError&) {
  }
}

}  // namespace
}  // namespace headway::test

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  setenv("HEADWAY_LOG", "error", 1);  // what is ignored is logged
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headway::test::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
