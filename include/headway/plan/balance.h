#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headway/plan/plan.h"

namespace headway {

/// A quantity of which ranks hold different amounts.
struct Unevenness {
  std::string_view what;  ///< "query heads", "KV heads", "MLP columns", ...
  int64_t largest = 0;
  int64_t smallest = 0;
  double mean = 0;

  double excess() const { return static_cast<double>(largest) / mean - 1; }  ///< largest against the mean
};

/// The quantities that are not the same on all ranks.
std::vector<Unevenness> uneven_parts(const Plan& plan);

/// Something that more than one rank holds.
struct Duplicate {
  std::string what;
  int64_t extra_bytes = 0;               ///< parameter bytes beyond one copy, over all ranks
  int64_t extra_kv_bytes_per_token = 0;  ///< KV bytes beyond one copy, over all ranks, for a token in the cache
};

/// What is held more than once. The extra parameter bytes add up to the ranks' total less one whole model.
std::vector<Duplicate> duplicates(const Plan& plan);

/// How many KV heads of a rank another rank holds as well and holds first: within its attention group, and all of
/// them in later replicas.
int64_t copied_kv_heads(const RankPlan& rank);

}  // namespace headway
