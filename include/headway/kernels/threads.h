#pragma once

namespace headway::kernels {

/// Tells how many ranks share this host and which of them this one is, before the first operator runs. Each rank then
/// takes its own part of the cores that the process may use: rank r of L the cores [floor(r*C/L), floor((r+1)*C/L)) of
/// C. With more ranks than cores a rank has one thread, which gives way to others while it waits.
/// Throws ArgumentError unless 0 <= local_rank < local_ranks.
void set_local_ranks(int local_rank, int local_ranks);

/// Sets the threads of an operator, the calling one included. The results of Headway's own kernels do not depend on
/// it. The default is HEADWAY_NUM_THREADS, else OMP_NUM_THREADS, else max(1, the rank's cores). Threads beyond the
/// caller stay alive and wait in a bounded spin, then asleep; where the rank has as many cores as threads, each is
/// pinned to one of them. ATen is set to one thread from the first operator on: Headway calls it from several of its
/// own threads instead, because OpenMP's would have to share cores with them.
/// Throws ArgumentError unless threads >= 1.
void set_num_threads(int threads);
int num_threads();

/// Pins the calling thread to the first of the rank's cores if the rank has as many cores as threads. For the thread
/// that runs the model; the others are pinned already. Threads that it starts later inherit the pin.
void pin_calling_thread();

}  // namespace headway::kernels
