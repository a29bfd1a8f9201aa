#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/verify_job.h"
#include "cli/verify_layouts.h"
#include "headway/config/model_config.h"

namespace headway {

/// Where the ranks of a layout first leave the states of T=1.
struct Bisection {
  std::optional<Deviation> first;  ///< absent: no state differs by more than the bound
  std::vector<int> ranks;          ///< those that differ there
};

/// The earliest deviation of all ranks.
Bisection bisect(const std::vector<RankFindings>& findings);

/// What came of one layout.
struct LayoutOutcome {
  VerifyLayout layout;
  int exit_code = 0;  ///< of its ranks
  std::optional<Comparison> comparison;
  std::optional<Bisection> bisection;  ///< where it was asked for and the layout differs

  bool agrees() const { return comparison && comparison->agrees(); }
};

struct VerifyReport {
  std::string model_name;
  ModelConfig model;
  std::string dtype;
  std::vector<int64_t> prompt_tokens;      ///< of each prompt
  int64_t tokens = 0;                      ///< greedy ones after each
  std::optional<LayoutOutcome> reference;  ///< T=1 against a file of logits
  std::vector<LayoutOutcome> layouts;      ///< against T=1

  bool agrees() const;
};

/// A table of all layouts, what differs in words, and a figure to paste into an issue.
std::string verify_text(const VerifyReport& report, bool colours);

Json verify_json(const VerifyReport& report);

}  // namespace headway
