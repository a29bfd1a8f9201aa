#pragma once

#include <string>

#include "headway/plan/peers.h"
#include "headway/plan/report.h"
#include "plan/text_table.h"

namespace headway {

/// "served" or "refused", coloured.
std::string verdict_text(const PeerVerdict& verdict, const Palette& palette);

/// The best layouts side by side, one column each.
std::string search_section(const PlanReport& report, const Palette& palette);

}  // namespace headway
