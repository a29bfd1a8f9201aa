#pragma once

#include "base/json.h"
#include "headway/plan/report.h"

namespace headway {

Json range_json(const Range& range);  ///< [begin, end]
Json cost_json(const StepCost& cost);
Json peers_json(const Plan& plan);
Json uneven_json(const Plan& plan);
Json duplicates_json(const Plan& plan);
Json figures_json(const MachineFigures& figures);

/// Sizes and predicted figures of a candidate, without its ranks.
Json candidate_json(const Candidate& candidate);

}  // namespace headway
