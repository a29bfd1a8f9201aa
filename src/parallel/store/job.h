#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headway/parallel/parallel_state.h"
#include "parallel/launch/rendezvous.h"
#include "parallel/launch/settings_difference.h"

namespace headway {

class Communicator;
class FailureBoard;

/// The ranks of one job that found each other, and the communicators between them.
class Job {
 public:
  /// Meets the other ranks and settles which device this rank uses. Throws LaunchError or ConfigError.
  Job(LaunchEnvironment launch, DistributedOptions options);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const LaunchEnvironment& launch() const { return launch_; }
  at::Device device() const { return device_; }
  std::chrono::milliseconds timeout() const { return options_.timeout; }

  /// Throws LaunchError naming the settings, ranks and values that differ, the same text on every rank.
  void require_equal(const Settings& settings);

  /// The group of `ranks`, to which this rank belongs. Groups of equal ranks share one communicator while one of them
  /// is alive; a group of one has none. All members ask at the same point of the program.
  GroupCoordinator make_group(const std::string& name, const RankList& ranks);

  /// Lets groups that are made from now on share nothing with those made before, whether these are still alive on some
  /// of the ranks or not. All ranks call it at the same point of the program.
  void forget_connections() { connections_.clear(); }

 private:
  /// A communicator and what its members know of its failure, which go together.
  struct Connection {
    std::shared_ptr<Communicator> communicator;
    std::shared_ptr<FailureBoard> failures;
  };
  struct KnownConnection {
    std::weak_ptr<Communicator> communicator;
    std::weak_ptr<FailureBoard> failures;
  };

  Connection connection_for(const RankList& ranks, GroupRank rank);
  /// Every rank's text, by global rank.
  std::vector<std::string> exchange(const std::string& what, const std::string& own);
  void settle_device();

  LaunchEnvironment launch_;
  DistributedOptions options_;
  at::Device device_ = at::kCPU;
  std::shared_ptr<Meeting> meeting_;                    ///< null if this rank is alone
  std::map<std::string, KnownConnection> connections_;  ///< by the group's members
  std::map<std::string, int> times_built_;  ///< keeps a group's second communicator apart from its first in the store
  int exchanges_ = 0;
};

}  // namespace headway
