#pragma once

#include <cstdint>

#include "headway/engine/llm_engine.h"

namespace headway {

/// Sequences of random token ids: how many, their prompts' length and how many tokens follow.
struct BenchWork {
  int64_t sequences = 1;
  int64_t prompt_tokens = 0;
  int64_t gen_tokens = 0;
};

/// How long the engine took for them.
struct BenchTimes {
  double prefill_s = 0;  ///< until every sequence had its first token
  double decode_s = 0;   ///< of the steps that brought every sequence a further token
  int64_t decode_steps = 0;
  double mean_context = 0;      ///< tokens attended to by a sequence, over those steps
  int64_t decode_begin_ns = 0;  ///< when the prefill had ended, on the monotonic clock
};

/// Runs the sequences to their end, greedily; for rank 0. Throws Error if no step brought all of them a token (a batch
/// whose prefill takes more steps than there are tokens to generate) or one ends with an error.
BenchTimes run_bench_work(LLMEngine& engine, const BenchWork& work, int64_t vocab_size);

}  // namespace headway
