#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headway/base/range.h"
#include "headway/parallel/ranks.h"

namespace headway {

std::string grouped(int64_t number);            ///< 1,234,567
std::string bytes_text(int64_t bytes);          ///< 1.23 GiB
std::string seconds_text(double seconds);       ///< 12.3 ms
std::string percent_text(double fraction);      ///< +3.1 %
std::string range_text(const Range& range);     ///< [0, 4)
std::string ranks_text(const RankList& ranks);  ///< [0 2 4], or [0-63] for a run of more than four
std::string groups_text(const std::vector<RankList>& groups, size_t shown);  ///< "[0 1] [2 3] and 14 more"

}  // namespace headway
