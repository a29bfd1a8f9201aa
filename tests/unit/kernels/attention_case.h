#pragma once

#include <cstdint>
#include <vector>

#include "headway/kernels/attention_batch.h"

namespace headway::kernels {

struct SequenceLengths {
  int64_t query = 1;
  int64_t context = 1;
};

/// A batch of those sequences whose blocks are scattered over a cache in no order.
struct BatchCase {
  AttentionBatch batch;
  int64_t blocks = 0;  ///< blocks that the cache needs

  static BatchCase of(const std::vector<SequenceLengths>& sequences, int64_t block_size) {
    BatchCase result;
    AttentionBatch& batch = result.batch;
    batch.query_starts.push_back(0);
    for (const SequenceLengths& lengths : sequences) {
      result.blocks += (lengths.context + block_size - 1) / block_size;
    }
    // A step that shares no factor with the number of blocks visits each once.
    const int64_t prime = 7919;
    result.blocks += result.blocks % prime == 0 ? 1 : 0;
    int64_t next = 0;
    for (const SequenceLengths& lengths : sequences) {
      auto& table = batch.block_tables.emplace_back();
      for (int64_t begin = 0; begin < lengths.context; begin += block_size) {
        table.push_back(static_cast<int32_t>((++next * prime) % result.blocks));
      }
      for (int64_t position = lengths.context - lengths.query; position < lengths.context; ++position) {
        batch.positions.push_back(position);
        batch.slots.push_back(table[position / block_size] * block_size + position % block_size);
      }
      batch.query_starts.push_back(batch.query_starts.back() + lengths.query);
      batch.context_lengths.push_back(lengths.context);
    }
    return result;
  }
};

}  // namespace headway::kernels
