#pragma once

#include <string_view>

#include "headway/plan/plan.h"
#include "headway/plan/traffic.h"

namespace headway {

/// What one rank's machine can do. All ranks are taken to be alike.
struct MachineFigures {
  std::string_view name;              ///< of the set of defaults
  double memory_bytes_per_s = 0;      ///< read bandwidth that one rank gets
  double operations_per_s = 0;        ///< multiply and add count as two
  double collective_latency_s = 0;    ///< of a smallest collective between two ranks
  double collective_bytes_per_s = 0;  ///< that a rank sends to its neighbours
};

/// Stated defaults, "cpu" (one core of a server CPU per rank, shared-memory collectives) or "gpu" (one H100-class
/// device per rank, NVLink). Throws ConfigError for another name.
MachineFigures machine_figures(std::string_view name);

/// Seconds that a part of a step takes on the slowest rank, and that it would take if the work were spread evenly.
struct PhaseCost {
  double slowest_s = 0;
  double mean_s = 0;
};

/// Predicted time of one step.
struct StepCost {
  PhaseCost attention;  ///< all layers: projections and the KV cache
  PhaseCost mlp;
  PhaseCost lm_head;
  double collectives_s = 0;

  double total_s() const;     ///< every phase waits for its slowest rank
  double balanced_s() const;  ///< as if each phase took its mean
  double uneven_cost() const { return total_s() / balanced_s() - 1; }
};

/// The cost model. In each phase a rank needs the longer of
///   bytes read (weights, and KV of its sequences) / memory_bytes_per_s   and   operations / operations_per_s,
/// and the phase ends with its slowest rank, because a collective follows. One collective over n ranks takes
///   collective_latency_s * ceil(log2 n) + sent bytes / collective_bytes_per_s,
/// where of b bytes handed in 2 b (n-1)/n are sent by an all_reduce, b (n-1) by an all_gather, b (n-1)/n by a
/// reduce_scatter or all_to_all. Overlap, embedding look-up, sampling and the host's own time are left out.
StepCost cost_of(const Plan& plan, const MachineFigures& figures, const Step& step);

/// Seconds of one use's collectives by that formula.
double collective_seconds(const CollectiveUse& use, const MachineFigures& figures);

}  // namespace headway
