#include "headway/layers/output_section.h"

#include <algorithm>

namespace headway {
namespace {

/// The parts of a section that no earlier rank holds: joined in rank order they are the section, each column once.
std::vector<Range> without_copies(const std::vector<Range>& ranges) {
  std::vector<Range> unique;
  int64_t covered = 0;
  for (const Range range : ranges) {
    unique.push_back({std::min(std::max(range.begin, covered), range.end), range.end});
    covered = std::max(covered, range.end);
  }
  return unique;
}

}  // namespace

at::Tensor gather_section(const GroupCoordinator& group, const at::Tensor& local, const OutputSection& section) {
  if (group.size() == 1) return local;
  const std::vector<Range> unique = without_copies(section.ranges);
  std::vector<int64_t> sizes;
  for (const Range range : unique) sizes.push_back(range.size());
  const Range kept = unique[group.rank().value];
  const int64_t skipped = kept.begin - section.ranges[group.rank().value].begin;
  return group.all_gather(local.narrow(1, skipped, kept.size()), 1, sizes);
}

}  // namespace headway
