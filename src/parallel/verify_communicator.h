#pragma once

#include "headway/parallel/communicator.h"

namespace headway {

/// Sums known numbers over the members once, so that a transport that does not work, or not with this build of torch,
/// is found at the start. Throws CommunicationError with the numbers.
void verify_communicator(Communicator& communicator, int group_size, GroupRank rank);

}  // namespace headway
