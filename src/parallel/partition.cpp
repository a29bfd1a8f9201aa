#include "headway/parallel/partition.h"

#include <fmt/format.h>

#include <algorithm>

#include "headway/base/error.h"

namespace headway {
namespace {

constexpr int64_t kLargestGranule = 64;

void check_rank(int group_size, GroupRank rank) {
  if (group_size < 1 || rank.value < 0 || rank.value >= group_size) {
    throw ArgumentError(fmt::format("group rank {} is not in a group of {}", rank.value, group_size));
  }
}

/// The r-th of `parts` balanced cuts of [0, total).
Range balanced_cut(int64_t total, int64_t parts, int64_t r) {
  return {r * total / parts, (r + 1) * total / parts};
}

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

int64_t granule_for(int64_t total, int64_t group_size) {
  for (int64_t granule = kLargestGranule; granule > 1; granule /= 2) {
    if (ceil_div(total, granule) >= group_size) return granule;
  }
  return 1;
}

}  // namespace

HeadPartition HeadPartition::of(HeadCounts total, int group_size, GroupRank rank) {
  check_rank(group_size, rank);
  const auto [q, kv] = total;
  if (q < 1 || kv < 1 || q % kv != 0) {
    throw ConfigError(fmt::format("{} query heads do not divide evenly over {} KV heads", q, kv));
  }
  if (group_size > q) {
    throw ConfigError(
        fmt::format("lm_head_tp: {} query heads over {} ranks leave rank 0 without a head", q, group_size));
  }
  HeadPartition partition;
  partition.total_q_heads = q;
  partition.total_kv_heads = kv;
  partition.q_heads = balanced_cut(q, group_size, rank.value);
  const int64_t q_per_kv = q / kv;
  partition.kv_heads = {partition.q_heads.begin / q_per_kv, (partition.q_heads.end - 1) / q_per_kv + 1};
  return partition;
}

int64_t HeadPartition::local_kv_head(int64_t local_q_head) const {
  if (local_q_head < 0 || local_q_head >= local_q_heads()) {
    throw ArgumentError(fmt::format("local query head {} is not among {}", local_q_head, local_q_heads()));
  }
  const int64_t q_per_kv = total_q_heads / total_kv_heads;
  return (q_heads.begin + local_q_head) / q_per_kv - kv_heads.begin;
}

std::vector<HeadRun> HeadPartition::runs() const {
  const int64_t q_per_kv = total_q_heads / total_kv_heads;
  std::vector<HeadRun> runs;
  for (int64_t kv = kv_heads.begin; kv < kv_heads.end; ++kv) {
    const int64_t first = std::max(kv * q_per_kv, q_heads.begin);
    const int64_t last = std::min((kv + 1) * q_per_kv, q_heads.end);
    runs.push_back({{first - q_heads.begin, last - q_heads.begin}, kv - kv_heads.begin});
  }
  return runs;
}

bool HeadPartition::holds_kv_copy(int64_t total_kv_head) const {
  return kv_heads.contains(total_kv_head) && total_kv_head * (total_q_heads / total_kv_heads) < q_heads.begin;
}

DimPartition DimPartition::of(int64_t total, int group_size, GroupRank rank) {
  check_rank(group_size, rank);
  if (total < 0) throw ArgumentError(fmt::format("a dimension of {} cannot be cut", total));
  const int64_t granule = granule_for(total, group_size);
  const Range granules = balanced_cut(ceil_div(total, granule), group_size, rank.value);
  return {{std::min(granules.begin * granule, total), std::min(granules.end * granule, total)}, total};
}

std::vector<int64_t> dim_partition_sizes(int64_t total, int group_size) {
  std::vector<int64_t> sizes;
  for (int r = 0; r < group_size; ++r) sizes.push_back(DimPartition::of(total, group_size, {r}).size());
  return sizes;
}

}  // namespace headway
