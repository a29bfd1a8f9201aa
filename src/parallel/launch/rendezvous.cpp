#include "parallel/launch/rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <thread>

#include "headway/base/error.h"
#include "parallel/launch/launch_variables.h"
#include "parallel/store/job_store.h"
#include "parallel/store/store_opening.h"

namespace headway {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLeavePause{5};
constexpr milliseconds kLeaveLimit{2000};
constexpr char kJoined[] = "joined";
constexpr char kLeft[] = "left";
constexpr char kGo[] = "go";

std::string size_key(int rank) {
  return fmt::format("world_size/{}", rank);
}

[[noreturn]] void report_missing(const Meeting& meeting, const LaunchEnvironment& launch, milliseconds limit) {
  std::vector<int> missing;
  for (int r = 0; r < launch.world_size; ++r) {
    if (!meeting.store().has(meeting.key(size_key(r)))) missing.push_back(r);
  }
  throw LaunchError(fmt::format("rank {} of {} ({}) at {}: ranks [{}] did not join within {} ms", launch.rank.value,
                                launch.world_size, launch.source, meeting.store().address(), fmt::join(missing, ", "),
                                limit.count()));
}

void wait_for_all(const Meeting& meeting, const LaunchEnvironment& launch, milliseconds limit, Deadline deadline) {
  for (int r = 0; r < launch.world_size; ++r) {
    if (!meeting.store().wait(meeting.key(size_key(r)), deadline)) report_missing(meeting, launch, limit);
    const std::string size = meeting.store().get(meeting.key(size_key(r)));
    if (size != std::to_string(launch.world_size)) {
      throw LaunchError(fmt::format("rank {} was started as one of {} but rank {} as one of {}", r, size,
                                    launch.rank.value, launch.world_size));
    }
  }
}

}  // namespace

Meeting::Meeting(std::shared_ptr<JobStore> store, std::string prefix, const LaunchEnvironment& launch)
    : store_(std::move(store)), prefix_(std::move(prefix)) {
  if (store_->add(key(fmt::format("seats/{}", launch.rank.value)), 1) > 1) {
    throw LaunchError(fmt::format("two processes are rank {} of {} at {}; another job must use another address or {}",
                                  launch.rank.value, launch.world_size, store_->address(), kJobIdVariable));
  }
  store_->add(key(kJoined), 1);
  store_->set(key(size_key(launch.rank.value)), std::to_string(launch.world_size));
}

Meeting::~Meeting() {
  try {
    leave();
  } catch (const LaunchError&) {
    // The rank that serves the store has gone first.
  }
}

void Meeting::leave() {
  const auto deadline = steady_clock::now() + kLeaveLimit;
  int64_t left = store_->add(key(kLeft), 1);
  while (store_->serves() && left < store_->add(key(kJoined), 0) && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kLeavePause);
    left = store_->add(key(kLeft), 0);
  }
}

std::shared_ptr<Meeting> meet(const LaunchEnvironment& launch, milliseconds limit) {
  const auto deadline = steady_clock::now() + limit;
  OpenedStore opened = open_store(launch, limit);
  auto meeting = std::make_shared<Meeting>(opened.store, opened.prefix, launch);
  wait_for_all(*meeting, launch, limit, deadline);
  // Rank 0 removes the rendezvous file before the others go on, so that none of them can come upon it again.
  if (launch.rank.value == 0) {
    opened.file.reset();
    meeting->store().set(meeting->key(kGo), "");
  } else if (!meeting->store().wait(meeting->key(kGo), deadline)) {
    report_missing(*meeting, launch, limit);
  }
  return meeting;
}

}  // namespace headway
