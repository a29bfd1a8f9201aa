#include "parallel/group_checks.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "headway/base/error.h"

namespace headway {
namespace {

[[noreturn]] void refuse(const GroupCoordinator& group, const char* operation, const std::string& reason) {
  throw ArgumentError(fmt::format("{} on {}: {}", operation, place_of(group), reason));
}

}  // namespace

std::string place_of(const GroupCoordinator& group) {
  return fmt::format("{}, global rank {} (group rank {} of {})", group.name(), group.global_rank().value,
                     group.rank().value, group.size());
}

std::string shape_text(const at::Tensor& tensor) {
  if (!tensor.defined()) return "";
  return fmt::format(" of [{}] {}", fmt::join(tensor.sizes(), ", "), c10::toString(tensor.scalar_type()));
}

void check_member(const GroupCoordinator& group, const char* operation, GroupRank rank) {
  if (rank.value >= 0 && rank.value < group.size()) return;
  refuse(group, operation, fmt::format("there is no group rank {}", rank.value));
}

void check_peer(const GroupCoordinator& group, const char* operation, GroupRank rank) {
  check_member(group, operation, rank);
  if (rank == group.rank()) refuse(group, operation, "the other side is this rank itself");
}

int64_t checked_dim(const GroupCoordinator& group, const char* operation, const at::Tensor& input, int64_t dim) {
  const int64_t dims = input.dim();
  if (dim < -dims || dim >= dims) {
    refuse(group, operation, fmt::format("a tensor of {} dimensions has no dimension {}", dims, dim));
  }
  return dim < 0 ? dim + dims : dim;
}

std::vector<int64_t> gather_sizes(const GroupCoordinator& group, const char* operation,
                                  const std::vector<int64_t>& sizes, int64_t own_extent) {
  if (sizes.empty()) return std::vector<int64_t>(group.size(), own_extent);
  check_counts(group, operation, "sizes", sizes);
  if (sizes[group.rank().value] != own_extent) {
    refuse(group, operation,
           fmt::format("the tensor's extent is {} but sizes are [{}]", own_extent, fmt::join(sizes, ", ")));
  }
  return sizes;
}

std::vector<int64_t> scatter_sizes(const GroupCoordinator& group, const std::vector<int64_t>& sizes, int64_t total) {
  if (sizes.empty()) {
    if (total % group.size() != 0) {
      refuse(group, "reduce_scatter", fmt::format("an extent of {} does not divide by the group", total));
    }
    return std::vector<int64_t>(group.size(), total / group.size());
  }
  check_counts(group, "reduce_scatter", "sizes", sizes);
  if (std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != total) {
    refuse(group, "reduce_scatter",
           fmt::format("sizes [{}] do not add up to an extent of {}", fmt::join(sizes, ", "), total));
  }
  return sizes;
}

void check_counts(const GroupCoordinator& group, const char* operation, const char* what,
                  const std::vector<int64_t>& counts) {
  const bool negative = std::any_of(counts.begin(), counts.end(), [](int64_t count) { return count < 0; });
  if (static_cast<int>(counts.size()) == group.size() && !negative) return;
  refuse(group, operation, fmt::format("{} [{}] are not one count for each member", what, fmt::join(counts, ", ")));
}

}  // namespace headway
