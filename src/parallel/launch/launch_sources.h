#pragma once

#include <optional>
#include <string>

#include "headway/parallel/launch.h"

namespace headway {

/// Reads launch variables strictly. An empty value counts as unset.
class LaunchVariables {
 public:
  explicit LaunchVariables(const EnvironmentLookup& lookup) : lookup_(lookup) {}

  std::optional<std::string> text(const std::string& name) const;
  std::optional<int> number(const std::string& name) const;  ///< throws LaunchError if it is not a whole number >= 0

 private:
  const EnvironmentLookup& lookup_;
};

/// Ranks, sizes and job id from the first launcher whose variables are set, or nothing. Addresses are not read.
std::optional<LaunchEnvironment> find_launch_source(const LaunchVariables& variables);

}  // namespace headway
