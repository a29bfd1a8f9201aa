#include "spmd/adopt_weights.h"

#include "headway/base/error.h"
#include "headway/weights/weight_loader.h"

namespace headway {

at::Tensor section_of(const Parameter& whole, const TensorSlice& section) {
  return whole.tensor.narrow(section.dim, section.offset, section.range.size());
}

void require_whole(const GroupCoordinator& group) {
  if (group.size() > 1) throw ConfigError("TP > 1 is only supported under SPMD.");
}

void adopt_weights(Module& sharded, const Module& original) {
  const at::Tensor& like = original.own_parameters().front()->tensor;
  allocate_parameters(sharded, like.scalar_type(), like.device());
  for (const auto& whole : original.own_parameters()) {
    Parameter& part = sharded.own_parameter(whole->name);
    for (const TensorSlice& slice : whole->slices) load_section(part, section_of(*whole, slice), slice.section);
  }
}

}  // namespace headway
