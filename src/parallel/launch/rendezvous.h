#pragma once

#include <memory>
#include <string>

#include "headway/parallel/parallel_state.h"

namespace headway {

class JobStore;

/// This rank's seat among the ranks of a job, which share a store. When the seat is given up, the rank that serves the
/// store waits a short while for the others to give up theirs, that they may still read what is in it.
class Meeting {
 public:
  /// Takes the seat. Throws LaunchError if another process has it.
  Meeting(std::shared_ptr<JobStore> store, std::string prefix, const LaunchEnvironment& launch);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  JobStore& store() const { return *store_; }
  const std::shared_ptr<JobStore>& shared_store() const { return store_; }
  /// `name` among the keys of this job.
  std::string key(const std::string& name) const { return prefix_ + name; }

 private:
  void leave();

  std::shared_ptr<JobStore> store_;
  std::string prefix_;
};

/// Finds the other ranks of the job. Throws LaunchError that names the meeting place and the missing ranks when `limit`
/// is over, and when ranks do not agree on the number of ranks.
std::shared_ptr<Meeting> meet(const LaunchEnvironment& launch, std::chrono::milliseconds limit);

}  // namespace headway
