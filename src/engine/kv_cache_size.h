#pragma once

#include <cstdint>

#include "headway/models/causal_lm.h"
#include "headway/parallel/group_coordinator.h"

namespace headway {

/// Bytes of memory that this process could still take: on a CPU what the system and the control group leave, on CUDA
/// what the device has free.
int64_t free_memory_bytes(c10::Device device);

/// Bytes of one KV block over all layers of this rank.
int64_t kv_block_bytes(const CausalLM& model, int64_t block_size);

/// `wanted` blocks, or as many as fit in half of `free_bytes`, shared by `ranks` ranks. Throws Error naming the sizes
/// if not even one fits.
int64_t affordable_blocks(int64_t wanted, int64_t block_bytes, int64_t free_bytes, int ranks);

/// The smallest `blocks` of all ranks, so that no rank is given a block id that it lacks.
int64_t smallest_over_ranks(const GroupCoordinator& world, int64_t blocks, c10::Device device);

}  // namespace headway
