#pragma once

#include <string>
#include <vector>

#include "cli/rank_report.h"
#include "headway/config/model_config.h"
#include "headway/config/parallel_config.h"

namespace headway {

/// Who holds what: for each rank its attention replica, query heads, KV heads ("*" marks one that an earlier rank of
/// the group holds too), MLP columns, vocabulary rows of the embedding and the LM head, and parameter bytes.
std::string layout_table(const ModelConfig& model, const ParallelConfig& parallel,
                         const std::vector<RankReport>& reports, bool colours);

}  // namespace headway
