#include "parallel/shm/shm_collectives.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "headway/base/range.h"
#include "parallel/shm/shm_reduce.h"

namespace headway {
namespace {

using Sources = std::array<const void*, ShmGroup::kMaxMembers>;

/// The elements of a chunk that `group_rank` sums up for all: whole cache lines, balanced.
Range owned_part(int64_t elements, int members, int group_rank) {
  constexpr int64_t kGranule = 64;
  const int64_t granules = (elements + kGranule - 1) / kGranule;
  const auto cut = [&](int64_t r) { return std::min(elements, r * granules / members * kGranule); };
  return {cut(group_rank), cut(group_rank + 1)};
}

/// Calls `step(offset, length)` for [0, total) in chunks, at least once: an empty tensor is a meeting too.
template <typename Step>
void for_each_chunk(int64_t total, int64_t chunk, Step&& step) {
  int64_t offset = 0;
  do {
    const int64_t length = std::min(chunk, total - offset);
    step(offset, length);
    offset += length;
  } while (offset < total);
}

void copy_bytes(void* to, const void* from, size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

}  // namespace

void ShmCollectives::barrier() {
  const CollectiveCall call{.kind = CollectiveKind::barrier};
  group_.begin_step(call);
  group_.meet(call);
}

/// Adding up everything oneself saves a step, adding up a part saves reading other members' memory.
bool ShmCollectives::direct_is_faster(size_t bytes) const {
  constexpr size_t kBytesReadInAStep = 10'000;  // in a microsecond, from another core's cache
  const size_t members = group_.size();
  const size_t read_directly = (members - 1) * bytes;
  const size_t read_by_owners = 2 * (members - 1) * bytes / members;
  return read_directly <= read_by_owners + kBytesReadInAStep;
}

void ShmCollectives::all_reduce(void* data, int64_t elements, DType dtype) {
  const size_t bytes = elements * size_of(dtype);
  const CollectiveCall call{.kind = CollectiveKind::all_reduce, .dtype = dtype, .bytes = bytes};
  if (direct_is_faster(bytes)) {
    reduce_directly(static_cast<std::byte*>(data), elements, call);
  } else {
    reduce_by_owners(static_cast<std::byte*>(data), elements, call);
  }
}

void ShmCollectives::reduce_directly(std::byte* data, int64_t elements, const CollectiveCall& call) {
  const SumFunction sum = sum_function(call.dtype);
  const int64_t element_bytes = size_of(call.dtype);
  for_each_chunk(elements, group_.slot_bytes() / element_bytes, [&](int64_t first, int64_t count) {
    std::byte* chunk = data + first * element_bytes;
    copy_bytes(group_.begin_step(call), chunk, count * element_bytes);
    group_.meet(call);
    Sources sources;
    for (int r = 0; r < group_.size(); ++r) sources[r] = group_.slot_of(r);
    sum(chunk, sources.data(), group_.size(), count);
  });
}

void ShmCollectives::reduce_by_owners(std::byte* data, int64_t elements, const CollectiveCall& call) {
  const SumFunction sum = sum_function(call.dtype);
  const int64_t element_bytes = size_of(call.dtype);
  for_each_chunk(elements, group_.slot_bytes() / element_bytes, [&](int64_t first, int64_t count) {
    std::byte* chunk = data + first * element_bytes;
    const auto bytes_of = [&](int r) {
      const Range part = owned_part(count, group_.size(), r);
      return Range{part.begin * element_bytes, part.end * element_bytes};
    };
    copy_bytes(group_.begin_step(call), chunk, count * element_bytes);
    group_.meet(call);
    const Range own = bytes_of(group_.self());
    Sources sources;
    for (int r = 0; r < group_.size(); ++r) sources[r] = group_.slot_of(r) + own.begin;

    std::byte* result = group_.begin_step(call);
    sum(result, sources.data(), group_.size(), own.size() / element_bytes);
    group_.meet(call);
    for (int r = 0; r < group_.size(); ++r)
      copy_bytes(chunk + bytes_of(r).begin, group_.slot_of(r), bytes_of(r).size());
  });
}

void ShmCollectives::reduce_scatter(void* output, const void* input, int64_t part_elements, DType dtype) {
  const SumFunction sum = sum_function(dtype);
  const int64_t element_bytes = size_of(dtype);
  const int64_t part_bytes = part_elements * element_bytes;
  const CollectiveCall call{
      .kind = CollectiveKind::reduce_scatter, .dtype = dtype, .bytes = static_cast<uint64_t>(part_bytes)};
  const int64_t chunk = group_.slot_bytes() / group_.size() / element_bytes;
  for_each_chunk(part_elements, chunk, [&](int64_t first, int64_t count) {
    const int64_t offset = first * element_bytes;
    const int64_t bytes = count * element_bytes;
    std::byte* slot = group_.begin_step(call);
    for (int r = 0; r < group_.size(); ++r) {
      copy_bytes(slot + r * bytes, static_cast<const std::byte*>(input) + r * part_bytes + offset, bytes);
    }
    group_.meet(call);
    Sources sources;
    for (int r = 0; r < group_.size(); ++r) sources[r] = group_.slot_of(r) + group_.self() * bytes;
    sum(static_cast<std::byte*>(output) + offset, sources.data(), group_.size(), count);
  });
}

void ShmCollectives::all_gather(void* output, const void* input, size_t bytes) {
  const CollectiveCall call{.kind = CollectiveKind::all_gather, .bytes = bytes};
  for_each_chunk(bytes, group_.slot_bytes(), [&](int64_t offset, int64_t length) {
    copy_bytes(group_.begin_step(call), static_cast<const std::byte*>(input) + offset, length);
    group_.meet(call);
    for (int r = 0; r < group_.size(); ++r) {
      copy_bytes(static_cast<std::byte*>(output) + r * bytes + offset, group_.slot_of(r), length);
    }
  });
}

void ShmCollectives::broadcast(void* data, size_t bytes, GroupRank source) {
  const CollectiveCall call{
      .kind = CollectiveKind::broadcast, .source = static_cast<int16_t>(source.value), .bytes = bytes};
  const bool sending = group_.self() == source.value;
  for_each_chunk(bytes, group_.slot_bytes(), [&](int64_t offset, int64_t length) {
    std::byte* chunk = static_cast<std::byte*>(data) + offset;
    std::byte* slot = group_.begin_step(call);
    if (sending) copy_bytes(slot, chunk, length);
    group_.meet(call);
    if (!sending) copy_bytes(chunk, group_.slot_of(source.value), length);
  });
}

}  // namespace headway
