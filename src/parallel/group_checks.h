#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "headway/parallel/group_coordinator.h"

namespace headway {

/// "lm_head_tp, global rank 3 (group rank 1 of 2)".
std::string place_of(const GroupCoordinator& group);

/// " of [8, 64] Float", or nothing for an undefined tensor.
std::string shape_text(const at::Tensor& tensor);

/// Each throws ArgumentError naming the operation, the group and the values.
/// @{
void check_member(const GroupCoordinator& group, const char* operation, GroupRank rank);
void check_peer(const GroupCoordinator& group, const char* operation, GroupRank rank);
/// `dim` counted from the front.
int64_t checked_dim(const GroupCoordinator& group, const char* operation, const at::Tensor& input, int64_t dim);
/// The members' extents for all_gather and gather: `sizes`, or `own_extent` for each where there are none.
std::vector<int64_t> gather_sizes(const GroupCoordinator& group, const char* operation,
                                  const std::vector<int64_t>& sizes, int64_t own_extent);
/// The members' extents for reduce_scatter: `sizes`, or equal parts of `total` where there are none.
std::vector<int64_t> scatter_sizes(const GroupCoordinator& group, const std::vector<int64_t>& sizes, int64_t total);
/// One non-negative count for each member.
void check_counts(const GroupCoordinator& group, const char* operation, const char* what,
                  const std::vector<int64_t>& counts);
/// @}

}  // namespace headway
