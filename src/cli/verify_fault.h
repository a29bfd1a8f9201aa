#pragma once

#include "headway/models/causal_lm.h"
#include "headway/parallel/ranks.h"

namespace headway {

/// For tests of `headway verify` alone. HEADWAY_TEST_SWAP_KV_HEADS="RANK:LAYER" makes one rank of every layout wrong:
/// the weights of its first two KV heads in that layer change places. Other ranks, and jobs of one rank, stay right.
/// Throws UsageError for a value that names no such place.
void apply_test_fault(CausalLM& model, GlobalRank rank, int ranks);

}  // namespace headway
