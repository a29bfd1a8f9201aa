#pragma once

#include <vector>

#include "headway/parallel/parallel_state.h"

/// What a test of several ranks may use. Every rank runs the same tests in the same order; a failure on any rank fails
/// the test on all. HEADWAY_TEST_BACKEND chooses the backend: auto (the default), gloo, nccl.
namespace headway::testing {

int world_size();
GlobalRank global_rank();
at::Device device();  ///< where tensors of a test must lie

/// The groups for these sizes, made once and kept. All ranks must ask in the same order. `tp` divides the world.
const ParallelState& parallel_state(int tp, int attn_tp);

/// parallel_state with the whole world as TP group.
const ParallelState& parallel_state(int attn_tp);

/// 1, ..., n: the sizes that divide n, for grids over attention group sizes.
std::vector<int> divisors(int n);

/// How the ranks of the test job met.
const LaunchEnvironment& launch();
DistributedOptions options();

}  // namespace headway::testing
