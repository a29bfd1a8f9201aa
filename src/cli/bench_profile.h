#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/trace.h"

namespace headway {

/// What one rank recorded in a run.
struct RankTrace {
  int rank = 0;
  std::vector<TraceEvent> events;
};

/// The time that operations of one name took themselves, without those that ran inside them.
struct OperatorTime {
  std::string name;
  int64_t calls = 0;
  int64_t self_ns = 0;
};

/// Of events that are nested or apart, longest first. Only those that begin in [begin_ns, end_ns) count.
std::vector<OperatorTime> operator_times(std::vector<TraceEvent> events, int64_t begin_ns, int64_t end_ns);

/// A file for chrome://tracing and Perfetto: one process per rank, times from the first event on.
std::string chrome_trace(const std::vector<RankTrace>& ranks);

/// Rank 0's operators in the prefill and in the decoding that begins at `decode_begin_ns`.
std::string profile_text(const RankTrace& first, int64_t decode_begin_ns, bool colours);

}  // namespace headway
