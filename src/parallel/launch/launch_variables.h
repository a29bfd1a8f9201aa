#pragma once

#include <string>
#include <utility>
#include <vector>

#include "headway/parallel/ranks.h"

namespace headway {

/// The variables by which Headway's own launcher tells its children, all on this host, where they stand.
inline constexpr char kRankVariable[] = "HEADWAY_RANK";
inline constexpr char kWorldSizeVariable[] = "HEADWAY_WORLD_SIZE";
inline constexpr char kStoreVariable[] = "HEADWAY_STORE";

/// A text unique to the job, for launchers that give none.
inline constexpr char kJobIdVariable[] = "HEADWAY_JOB_ID";

/// What to set in the environment of child `rank` of `world_size`. `store_file` is a path that does not exist yet, the
/// same for all children; rank 0 creates and removes it.
std::vector<std::pair<std::string, std::string>> child_launch_variables(GlobalRank rank, int world_size,
                                                                        const std::string& store_file);

}  // namespace headway
