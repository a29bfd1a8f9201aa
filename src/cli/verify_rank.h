#pragma once

#include "cli/model_options.h"
#include "cli/verify_job.h"
#include "headway/parallel/parallel_state.h"

namespace headway {

/// Does a job's part on this rank and writes its findings.
void verify_on_rank(const VerifyJob& job, const ModelPlan& plan, const ParallelState& state);

}  // namespace headway
