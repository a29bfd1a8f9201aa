#include "cli/verify_fault.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cli/errors.h"
#include "headway/base/log.h"
#include "headway/layers/linear.h"

namespace headway {
namespace {

constexpr char kVariable[] = "HEADWAY_TEST_SWAP_KV_HEADS";

struct Place {
  int rank = 0;
  int layer = 0;
};

Place place_of(const char* text) {
  Place place;
  char rest = 0;
  if (std::sscanf(text, "%d:%d%c", &place.rank, &place.layer, &rest) == 2) return place;
  throw UsageError(fmt::format("{} is \"{}\"; RANK:LAYER is expected", kVariable, text));
}

QKVParallelLinear& qkv_projection(CausalLM& model, int layer) {
  const std::string wanted = fmt::format("layers.{}.self_attn.qkv_proj", layer);
  for (auto& [name, module] : model.named_modules()) {
    if (!name.ends_with("." + wanted)) continue;
    if (auto* projection = dynamic_cast<QKVParallelLinear*>(module)) return *projection;
  }
  throw UsageError(fmt::format("{}: the model has no {}", kVariable, wanted));
}

/// Swaps the rows [first, first + rows) and those that follow.
void swap_neighbours(const at::Tensor& tensor, int64_t first, int64_t rows) {
  const at::Tensor kept = tensor.narrow(0, first, rows).clone();
  tensor.narrow(0, first, rows).copy_(tensor.narrow(0, first + rows, rows));
  tensor.narrow(0, first + rows, rows).copy_(kept);
}

void swap_first_kv_heads(QKVParallelLinear& projection) {
  const int64_t head_dim = projection.shape().head_dim;
  const int64_t keys = projection.heads().local_q_heads() * head_dim;
  const int64_t values = keys + projection.heads().local_kv_heads() * head_dim;
  for (const char* name : {"weight", "bias"}) {
    const at::Tensor& tensor = projection.own_parameter(name).tensor;
    swap_neighbours(tensor, keys, head_dim);
    swap_neighbours(tensor, values, head_dim);
  }
}

}  // namespace

void apply_test_fault(CausalLM& model, GlobalRank rank, int ranks) {
  const char* text = std::getenv(kVariable);
  if (text == nullptr || ranks == 1) return;
  const Place place = place_of(text);
  QKVParallelLinear& projection = qkv_projection(model, place.layer);
  if (place.rank != rank.value) return;
  if (projection.heads().local_kv_heads() < 2) {
    throw UsageError(fmt::format("{}: rank {} holds one KV head; there is nothing to swap", kVariable, rank.value));
  }
  swap_first_kv_heads(projection);
  log(LogLevel::warning, fmt::format("{}: KV heads of layer {} are swapped", kVariable, place.layer));
}

}  // namespace headway
