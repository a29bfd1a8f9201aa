#pragma once

#include "headway/parallel/launch.h"

namespace headway {

/// Ends this process within a second of the death of the launcher that started it: mpirun and torchrun, if killed by
/// force, would leave their ranks behind. Ranks that were started by hand may outlive the shell that did so; those of
/// our own launcher are ended by the kernel.
void end_with_launcher(const LaunchEnvironment& launch);

}  // namespace headway
