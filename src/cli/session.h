#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/model_options.h"
#include "headway/models/causal_lm.h"
#include "headway/parallel/parallel_state.h"

namespace headway {

/// Joins the ranks and runs `body` among them. An error is reported and ends this process there and then: groups
/// whose other members may never answer again are not taken down in order.
void run_on_ranks(const ModelOptions& options, const ModelPlan& plan,
                  const std::function<void(const ParallelState&)>& body);

/// Runs `work` on rank 0 and returns its number on every rank; what it throws is thrown on every rank,
/// as a UsageError if it is one, else as an Error.
int64_t decide_on_first_rank(const GroupCoordinator& world, const std::function<int64_t()>& work);

/// Loads the model; rank 0 shows how far it is.
LoadedModel load_with_progress(const ModelPlan& plan, const ParallelState& state);

}  // namespace headway
