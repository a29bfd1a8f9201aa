#pragma once

#include <cstdint>
#include <vector>

#include "headway/base/range.h"
#include "headway/models/causal_lm.h"
#include "headway/parallel/parallel_state.h"
#include "headway/parallel/ranks.h"

namespace headway {

/// What one rank holds and what it took.
struct RankReport {
  GlobalRank rank;
  Range q_heads;
  Range kv_heads;
  int64_t parameter_bytes = 0;
  int64_t bytes_read = 0;
  int64_t peak_rss_bytes = 0;
};

/// The most memory that this process has had at a time.
int64_t peak_rss_bytes();

RankReport report_of_this_rank(const LoadedModel& loaded, const ParallelState& state);

/// The reports of all ranks, in order; every rank calls it and gets them.
std::vector<RankReport> gather_reports(const RankReport& own, const ParallelState& state);

}  // namespace headway
