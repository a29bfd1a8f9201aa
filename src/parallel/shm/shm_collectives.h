#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headway/base/dtype.h"
#include "headway/parallel/ranks.h"
#include "parallel/shm/shm_group.h"

namespace headway {

/// Collectives on plain memory, of any size, over the steps of a ShmGroup. Sums are taken in group order with fp32
/// accumulation and rounded once, so that all members hold the same bits, whatever the size.
/// All throw CommunicationError as ShmGroup does, and ArgumentError before anything is sent.
class ShmCollectives {
 public:
  explicit ShmCollectives(ShmGroup& group) : group_(group) {}

  void barrier();
  void all_reduce(void* data, int64_t elements, DType dtype);
  /// `input` holds size() parts of `part_elements`; `output` receives the sum of this member's part.
  void reduce_scatter(void* output, const void* input, int64_t part_elements, DType dtype);
  /// `output` holds size() times `bytes`.
  void all_gather(void* output, const void* input, size_t bytes);
  void broadcast(void* data, size_t bytes, GroupRank source);
  /// `input` holds a part for each member, `output` one from each, both in group order, of the given bytes.
  void all_to_all(void* output, const void* input, const std::vector<size_t>& output_bytes,
                  const std::vector<size_t>& input_bytes);

 private:
  void reduce_directly(std::byte* data, int64_t elements, const CollectiveCall& call);
  void reduce_by_owners(std::byte* data, int64_t elements, const CollectiveCall& call);
  bool direct_is_faster(size_t bytes) const;

  ShmGroup& group_;
};

}  // namespace headway
