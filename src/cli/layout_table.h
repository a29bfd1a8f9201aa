#pragma once

#include <string>
#include <vector>

#include "cli/rank_report.h"
#include "headway/plan/plan.h"

namespace headway {

/// Who holds what: for each rank its attention replica, query heads, KV heads ("*" marks one that an earlier rank of
/// the group holds too), MLP columns, vocabulary rows of the embedding and the LM head as planned, and the parameter
/// bytes that it reports.
std::string layout_table(const Plan& plan, const std::vector<RankReport>& reports, bool colours);

}  // namespace headway
