// config.json: it is refused with a ConfigError or CheckpointError, or gives a config that is sound.
#include <cmath>
#include <cstdlib>

#include "config/config_object.h"
#include "config/model_config_reader.h"
#include "fuzz/live_heap.h"
#include "headway/base/error.h"

namespace headway::test {
namespace {

void check(const ModelConfig& config) {
  require(config.hidden_size > 0 && config.intermediate_size > 0 && config.vocab_size > 0, "sizes are positive");
  require(config.total_kv_heads > 0 && config.total_q_heads % config.total_kv_heads == 0, "KV heads divide");
  require(config.head_dim > 0 && config.head_dim % 2 == 0, "the head dimension is even");
  require(static_cast<int64_t>(config.sliding_window.size()) == config.num_layers, "each layer has its window or none");
  require(config.rope.theta > 1 && std::isfinite(config.rope.theta), "theta is a number above 1");
}

void read(std::string_view text) {
  const LiveHeapLimit limit;
  try {
    check(read_model_config(ConfigObject(parse_json(text, "config.json"), "config.json")));
  } catch (const ConfigError&) {
  } catch (const CheckpointError&) {
  }
}

}  // namespace
}  // namespace headway::test

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  setenv("HEADWAY_LOG", "error", 1);  // keys that are not used are named in warnings
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= headway::ConfigObject::kMaxFileBytes) headway::test::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
